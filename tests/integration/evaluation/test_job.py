"""An evaluation tells which job of Slurm it ran in, though nothing of Slurm's reaches the worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc.slurm import current_job_id
from sharp.evaluation.local import LocalEvaluator
from tests.helpers.evaluation.evaluation_waves import PROBLEM, RLIMITS, SPLITS, request, waves

ELEMENT = {"SLURM_JOB_ID": "20", "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3"}


@pytest.mark.parametrize(
    ("variables", "job"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "17"}, "17"),
        (ELEMENT, "17_3"),
        ({"HPC_JOB": "17_3"}, "17_3"),
        ({**ELEMENT, "HPC_JOB": "5"}, "17_3"),
    ],
)
def test_the_job_that_a_process_works_for(variables: dict[str, str], job: str | None) -> None:
    assert current_job_id(variables) == job


@pytest.mark.parametrize(("variables", "job"), [({}, None), (ELEMENT, "17_3")])
async def test_a_result_names_its_job(
    tmp_path: Path,
    scratch_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    job: str | None,
) -> None:
    for name in ("SLURM_JOB_ID", "HPC_JOB"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    data = waves(tmp_path)
    async with LocalEvaluator(
        tmp_path / "run", PROBLEM, data, SPLITS, workers=1, sandbox=RLIMITS
    ) as evaluator:
        result = await evaluator.evaluate(request(data))
    assert result.failure is None
    assert result.environment.get("job") == job
