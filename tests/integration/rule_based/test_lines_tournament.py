"""A whole tournament on an equation outside the library, in which programs are run on small arrays."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from sharp.evaluation.protocol import CandidateFailure
from sharp.methods.pde_sharp import pde_sharp
from tests.helpers.problems.specifications import specification
from tests.helpers.rule_based.described_problems import arguments, distance, exact, run
from tests.helpers.rule_based.simulated import Simulation, simulate

RING = specification("decaying-ring")


class Running(Simulation):
    """A world in which a program's error is that of its run."""

    def _failure(self, code: str) -> CandidateFailure | None:
        try:
            arrays = self._run(code)
        except Exception as error:  # noqa: BLE001 - any exception of a program is its failure
            return CandidateFailure("exception", f"{type(error).__name__}: {error}", f"line 1\n    {error}")
        if arrays[0].shape != (2, 4, 25):
            return CandidateFailure("shape", f"u has the shape {arrays[0].shape}")
        return None if np.isfinite(arrays[0]).all() else CandidateFailure("non_finite", "u is not finite")

    def _error(self, code: str) -> float:
        return distance(self._run(code), exact(self.problem))

    def _run(self, code: str) -> tuple[np.ndarray, ...]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run(code, arguments(self.problem))


async def test_programs_are_written_judged_and_improved(tmp_path: Path) -> None:
    specification = tmp_path / "ring.yaml"
    specification.write_text(RING)
    session, world = simulate(str(specification), genesis={"candidates": 8}, synthesis={"max_cycles": 1})
    running = Running(world.problem)
    state = await pde_sharp(replace(session, effects=running))
    assert not state.discarded
    assert state.analysis is not None
    assert state.analysis.steps[0].verdict["type"] == "parabolic"
    assert [bound.expression for bound in state.analysis.bounds] == ["dx**2/0.1"]
    assert not [entry.note for entry in state.entries if entry.action == "forfeit"]
    first = min(entry.metric for entry in state.entries if entry.round == 1)
    best = min(entry.metric for entry in state.entries)
    assert any(entry.action == "patch" for entry in state.entries)
    assert best < first
    assert best < 1e-4
