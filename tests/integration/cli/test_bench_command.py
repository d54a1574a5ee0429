"""`sharp bench agent` as a command: plans, killed in the middle and taken up again, tables, wrong input."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from sharp.agent import POLICIES
from sharp.experiments.sweeps.sweep_log import log_file, read_record
from tests.helpers.cli.sharp_command import Sharp, wait_for

QUICK = [
    part
    for name in ("predator-prey-lake", "heat-rod-two-ends", "wave-graded-ring")
    for part in ("--cases", name)
]


def test_a_dry_run_says_how_many_trials_there_are(sharp: Sharp, tmp_path: Path) -> None:
    there = Sharp(tmp_path)
    words = there.ok(
        *(
            "bench",
            "agent",
            "--dry-run",
            "--cases",
            "heat",
            "--seeds",
            "2",
            "--error-rate",
            "0",
            "--error-rate",
            "0.2",
        )
    )
    assert "432 cells (432 new)" in words.stdout
    assert "at most all calls that its policy may make" in words.stdout
    facts = json.loads(there("bench", "agent", "--dry-run", "--json", *QUICK).stdout)
    assert facts["states"] == {"new": 18}
    assert {cell["values"]["trial.policy"] for cell in facts["cells"]} == set(POLICIES) - {"translation"}
    assert list(tmp_path.iterdir()) == []


def test_killed_in_the_middle_it_goes_on_with_what_is_left(sharp: Sharp, tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    command = ("bench", "agent", *QUICK, "--policy", "none", "--dir", folder, "--workers", "1")
    process = sharp.start(*command)
    wait_for(lambda: read_record(folder).rows, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    kept = log_file(folder).read_bytes()
    before = len(read_record(folder).rows)
    assert 1 <= before < 3
    again = sharp.ok(*command, "--json")
    facts = json.loads(again.stdout)
    assert (facts["trials"], facts["played"], facts["failed"]) == (3, 3, 0)
    assert [(arm["cases"], arm["solved"]) for arm in facts["arms"]] == [(3, 3)]
    assert log_file(folder).read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    assert again.stderr.count(": a trial of agents") == 3 - before
    files = [facts["files"][name] for name in ("html", "markdown", "csv", "parquet")]
    assert all(Path(path).stat().st_size > 0 for path in files)
    shown = sharp(*command[:-2], "--report-only")
    assert shown.stdout.splitlines()[1] == "3 of 3 trials run, 0 failed"
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--policy", "progact"], "unknown policy 'progact'; did you mean 'prog-act'?"),
        (["--model", "gpt4o"], "there is no model card 'gpt4o'; did you mean 'gpt-4o'?"),
        (["--cases", "heet"], "unknown case or category 'heet'; did you mean 'heat'?"),
        (["--report-only"], "--dir bench/agent: no benchmark has been begun there"),
        (["--error-rate", "1"], "1.0 is not in the range 0<=x<1"),
        (["--style", "dutch", "--cases", "burgers"], "unknown style 'dutch'"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_played(
    tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    done = Sharp(tmp_path)("bench", "agent", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []
