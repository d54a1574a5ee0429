"""What several tests share. Processes that tests start find it with `finding_helpers()` as their environment."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]


def finding_helpers(**variables: str) -> dict[str, str]:
    """Return this environment and some variables more, in which `import tests.helpers` works."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables}
