"""All candidates of the conformance suite, by theme."""

from __future__ import annotations

from tests.helpers.conformance.candidates_endings import ENDINGS
from tests.helpers.conformance.candidates_files import FILES
from tests.helpers.conformance.candidates_forgeries import FORGERIES
from tests.helpers.conformance.candidates_processes import PROCESSES
from tests.helpers.conformance.candidates_resources import RESOURCES
from tests.helpers.conformance.candidates_returns import RETURNS
from tests.helpers.conformance.candidates_runtime import RUNTIME
from tests.helpers.conformance.candidates_secrets import SECRETS
from tests.helpers.conformance.hostile import Candidate

THEMES: dict[str, tuple[Candidate, ...]] = {
    "Returns": RETURNS,
    "Endings": ENDINGS,
    "Resources": RESOURCES,
    "Runtime": RUNTIME,
    "Processes": PROCESSES,
    "Forgeries": FORGERIES,
    "Files": FILES,
    "Secrets and neighbours": SECRETS,
}
ALL = tuple(candidate for theme in THEMES.values() for candidate in theme)
COLD = tuple(
    candidate
    for theme in (RESOURCES, PROCESSES, FILES, SECRETS)
    for candidate in theme
    if not candidate.stopped
)
"""Those for which it may matter whether their interpreter is a fresh one."""
