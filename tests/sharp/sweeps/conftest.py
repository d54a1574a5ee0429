from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _data_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Reference data are made once for all sweeps of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARP_DATA", str(tmp_path_factory.mktemp("data")))
        yield
