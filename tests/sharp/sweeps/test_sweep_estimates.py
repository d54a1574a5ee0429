"""What a sweep over methods is estimated to need."""

from __future__ import annotations

from pathlib import Path

from small_sweeps import plan_of

from sharp.sweeps.estimate import SweepEstimate, estimate_sweep
from sharp.sweeps.library import Library

METHODS = "[codepde, codepde-refine, cot-reflection, moa, cepo, funsearch, aide, pde-sharp]"


def estimated(folder: Path, methods: str, more: str = "") -> SweepEstimate:
    return estimate_sweep(plan_of(folder, f"{more}matrix:\n  method: {methods}\n"), Library(), None)


def test_every_method_is_counted_by_its_own_rules(tmp_path: Path) -> None:
    alone = {
        method: estimated(tmp_path / method, f"[{method}]")
        for method in METHODS.strip("[]").split(", ")
        if (tmp_path / method).mkdir() is None
    }
    assert alone["cepo"].calls.expected > alone["moa"].calls.expected > alone["codepde"].calls.expected
    assert alone["codepde"].evaluations.expected == 3
    assert alone["codepde-refine"].evaluations.expected == 3 + 12
    assert alone["funsearch"].evaluations.expected == 12 + 32
    assert alone["aide"].evaluations.most == 96
    (tmp_path / "all").mkdir()
    together = estimated(tmp_path / "all", METHODS)
    assert together.evaluations.expected == sum(one.evaluations.expected for one in alone.values())


def test_programs_that_another_method_has_written_are_not_paid_for_again(tmp_path: Path) -> None:
    guess = estimated(tmp_path, "[codepde, codepde-refine, aide]")
    assert guess.shared_calls.expected == 3


def test_funsearch_takes_as_many_programs_as_it_begins_with(tmp_path: Path) -> None:
    guess = estimated(tmp_path, "[codepde, funsearch]")
    # FunSearch begins with twelve programs, which are more than the three of CodePDE, and gives it all.
    assert guess.shared_calls.expected == 3
