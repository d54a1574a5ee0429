"""Functions that several programs have in common: nothing is lost, and references of a model are put back."""

from __future__ import annotations

from sharp.llm import abridged, listed_functions, read_listed, shared_functions, written_out

LIMITER = '''@jit
def limiter(a, b):
    """Van Leer: harmonic mean of two slopes of one sign, zero at an extremum."""
    same_sign = a * b > 0.0

    return where(same_sign, 2.0 * a * b / where(same_sign, a + b, 1.0), 0.0)'''
FIRST = f"import numpy as np\n\n\n{LIMITER}\n\n\ndef solver(u):\n    return u\n"
SECOND = f"CFL = 0.4\n\n\n{LIMITER}\n\n\ndef solver(u):\n    return 2 * u\n"
ALONE = LIMITER.replace("a * b", "b * a")
LINE = "# [function 1: limiter]"


def test_a_function_that_two_programs_define_alike_is_listed_once() -> None:
    shared = shared_functions([FIRST, SECOND, ALONE])
    assert shared == {LINE: LIMITER}
    assert abridged(FIRST, shared) == FIRST.replace(LIMITER, LINE)
    assert abridged(ALONE, shared) == ALONE
    for code in (FIRST, SECOND, ALONE):
        assert written_out(abridged(code, shared), shared) == code
    assert read_listed(listed_functions(shared)) == shared


def test_short_functions_and_what_is_no_program_stay_as_they_are() -> None:
    assert (
        shared_functions([FIRST, "def broken(:\n", "def f():\n    return 1\n", "def f():\n    return 1\n"])
        == {}
    )


def test_several_shared_functions_are_read_back_from_their_list() -> None:
    other = LIMITER.replace("limiter", "advance")
    both = f"{other}\n\n\n{LIMITER}\n"
    shared = shared_functions([both, both])
    assert list(shared) == ["# [function 1: advance]", "# [function 2: limiter]"]
    assert read_listed(listed_functions(shared)) == shared


def test_references_in_an_answer_are_put_back_in_blocks_and_in_diffs() -> None:
    shared = shared_functions([FIRST, SECOND])
    block = f"<<<<<<< SEARCH\n{LINE}\n=======\n>>>>>>> REPLACE\n"
    assert written_out(block, shared) == block.replace(LINE, LIMITER)
    removed = "\n".join(f"-{line}" for line in LIMITER.split("\n"))
    assert written_out(f"@@\n-{LINE}\n+x = 1\n", shared) == f"@@\n{removed}\n+x = 1\n"
    unknown = "# [function 7: limiter]\nIt uses `# [function 1: limiter]` in prose.\n"
    assert written_out(unknown, shared) == unknown
