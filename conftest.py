"""What holds for all tests.

No test reads or fills the user's cache of evaluations, nor that of another test. A shell that starts tests in the
background lets them ignore SIGINT, and so would all that they start.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)
_numbers = count()


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache of what runs in fixtures of the session or of a module, which are set up before the next one."""
    folder = tmp_path_factory.mktemp("caches") / "session"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARP_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def _cache_of_its_own(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARP_CACHE", str(session_cache.with_name(str(next(_numbers)))))
