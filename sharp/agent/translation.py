"""The Translator of PDE-SHARP: what is stated in words becomes a specification (arXiv 2511.00183, section 3).

The agents that set problems up do it, with the Parser's tools alone, so that nothing can be solved here. What is
missing or contradictory is to be asked for and not invented.

    FOLDER/session-…/                    the session, with its journal
    FOLDER/problem.yaml                 the specification, where the words were understood
    FOLDER/questions.yaml               what has to be answered
    FOLDER/report.html, solve_result.json     how it went, and what it took
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sharp.agent.export import PROBLEM, export_session
from sharp.agent.questions import Answering, nobody
from sharp.agent.sessions import MessageCallback, ModelCalls, SessionResult, run_session
from sharp.agent.settings import ROLES, AgentConfig
from sharp.llm import ModelCard


@dataclass(frozen=True)
class Translation:
    """How the last session on the words ended, with its report in the folder of all of them."""

    finished: SessionResult
    report: Path

    @property
    def understood(self) -> bool:
        """Whether `problem` holds the specification of what was said."""
        return self.finished.outcome.ending == "specified"

    @property
    def problem(self) -> Path:
        """The file of the specification."""
        return self.report.parent / PROBLEM


def translate(
    statement: str,
    model: str,
    card: ModelCard,
    folder: Path,
    answer: Answering = nobody,
    say: MessageCallback = lambda _: None,
    calls: ModelCalls | None = None,
) -> Translation:
    """Let a model translate a statement, or go on where this was left, with the answers in the folder.

    Raises what `run_session` raises.
    """
    settings = AgentConfig(statement, dict.fromkeys(ROLES, model), policy="translation")
    finished = run_session(folder, settings, say, {model: card}, answer=answer, calls=calls)
    return Translation(finished, export_session(finished, folder))
