import pytest
from report_runs import draw_test_picture, play


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A finished run with a picture, and its state; tests that write take a directory of their own."""
    run, state = play(tmp_path_factory.mktemp("finished") / "run")
    draw_test_picture(run, state)
    return run, state
