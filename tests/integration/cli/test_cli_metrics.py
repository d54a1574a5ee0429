"""`sharp metrics` tells what there is, for whom, and what is wrong with a name."""

from __future__ import annotations

import pytest

from sharp.reference.feedback import all_metrics
from tests.helpers.cli.sharp_command import Sharp


def test_all_kinds_are_listed(sharp: Sharp) -> None:
    head, *words = sharp("metrics").stdout.splitlines()
    assert head.split() == ["measure", "title", "for"]
    assert [line.split()[0] for line in words] == list(all_metrics())
    assert all(measure.title in line for line, measure in zip(words, all_metrics().values(), strict=True))
    plain = sharp.json("metrics")
    assert [measure["name"] for measure in plain] == list(all_metrics())
    assert all("function" not in measure for measure in plain)


def test_one_kind_is_told_in_full(sharp: Sharp) -> None:
    words = sharp("metrics", "two_grid").stdout
    measure = all_metrics()["two_grid"]
    assert words.startswith("two_grid: Two-grid difference\n")
    for part in (measure.description, measure.shape, measure.normalisation, measure.source, "coarser grid"):
        assert part in words
    assert sharp.json("metrics", "two_grid")["needs_coarse_run"] is True


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["two-grid"],
            "there is no feedback metric 'two-grid'; did you mean 'two_grid'? Valid: nrmse, residual",
        ),
        (
            ["cfl", "--problem", "darcy"],
            "there is no feedback metric 'cfl'. Valid: nrmse, residual, boundary_con",
        ),
        (["--problem", "darci"], "did you mean 'darcy'?"),
    ],
)
def test_names_that_are_none(sharp: Sharp, arguments: list[str], complaint: str) -> None:
    assert complaint in sharp.fails(2, "metrics", *arguments)


def test_a_run_refuses_a_kind_of_another_problem(sharp: Sharp) -> None:
    assert (
        "--set: feedback.metrics.0: there is no feedback metric 'boundary_condition' for advection"
        in sharp.fails(2, "run", "advection", "--dry-run", "--set", "feedback.metrics=[boundary_condition]")
    )
