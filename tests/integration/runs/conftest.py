from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from hpc.campaign.stop_signal import SIGNALS


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    """Give back the signals that controllers take."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)
