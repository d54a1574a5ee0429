"""The digest of an earlier run that a run begins with: from which runs it may be taken, and how."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sharp.config import RunConfig
from sharp.errors import ConfigurationError
from sharp.problems import Problem
from sharp.reference.datasets import DataSet
from sharp.runs.directory import Run, load_run
from sharp.runs.execute import Replay, replay
from sharp.tournament.prior import digest


def earlier_run(config: RunConfig, problem: Problem) -> Run | None:
    """Return the run that a configuration names, None where it names none.

    It must be a run on the same problem and the same samples, whose judges were told no more than this run permits.
    Raises ConfigurationError for any other, and RunDirectoryError where there is no run.
    """
    if config.genesis.prior_run is None:
        return None
    prior = load_run(config.genesis.prior_run)
    if prior.problem.hash != problem.hash:
        raise _unfit(prior, f"is a run on {prior.problem.label}; expected one on {problem.label}")
    ours, theirs = config.evaluation, prior.config.evaluation
    if (theirs.validation, theirs.test) != (ours.validation, ours.test):
        raise _unfit(
            prior,
            f"had {theirs.validation} validation and {theirs.test} test samples; expected {ours.validation} and "
            f"{ours.test}, so that nothing is told of test samples",
        )
    more = set(prior.config.feedback.metrics) - {*config.feedback.metrics, "none"}
    if more:
        permitted = ", ".join(config.feedback.metrics)
        raise _unfit(prior, f"tells of {', '.join(sorted(more))}; feedback.metrics permits {permitted} only")
    return prior


def digest_of(prior: Run, dataset: DataSet) -> str:
    """Return the digest of a run for one on this data set; raises ConfigurationError if it had another, or no winner.

    Results on other samples do not compare; worse, they could be test samples of the new run.
    """
    label = prior.manifest["data"]["label"]
    if label != dataset.label:
        raise _unfit(prior, f"was run on the data {label}; expected {dataset.label}")
    found = _replayed(prior)
    if found.state.best is None:
        reason = found.missing or "no program of it ran successfully"
        raise _unfit(prior, f"has no winner to tell of ({reason})")
    return digest(prior.config, found.state)


def _replayed(run: Run) -> Replay:
    """Replay a run in a thread of its own, and wait: a sweep begins its runs within an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(replay, run).result()


def _unfit(prior: Run, sentence: str) -> ConfigurationError:
    return ConfigurationError(f"genesis.prior_run: {prior.path} {sentence}")
