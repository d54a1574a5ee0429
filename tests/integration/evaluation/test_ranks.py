"""Shards over MPI ranks, started by a real launcher: the same results as in one process, and no rank left waiting."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hpc.errors import InfrastructureError
from hpc.processes import descendants
from sharp.config import EvaluationOptions
from sharp.errors import ConfigurationError
from sharp.evaluation import ranks
from sharp.evaluation.launcher import checked_launcher, launcher_command, launcher_settings, reason
from sharp.evaluation.local import LocalEvaluator
from sharp.evaluation.worker_pool import start_process
from sharp.runs.solver_evaluation import SolverEvaluationOptions, evaluate_solver
from tests.helpers.evaluation.evaluation_waves import ALONE, HOLD, PROBLEM, RLIMITS, SPLITS, request, waves

MPIEXEC = Path(sys.executable).with_name("mpiexec")
MISSING = not MPIEXEC.exists() or importlib.util.find_spec("mpi4py") is None


@pytest.fixture
def mpiexec(monkeypatch):
    """Return how to launch so many ranks, on this machine alone."""
    if MISSING and os.environ.get("CI_REQUIRE_MPI") == "1":
        pytest.fail("the packages of the extra 'mpi' are not installed")
    if MISSING:
        pytest.skip("the packages of the extra 'mpi' are not installed")
    monkeypatch.setenv("HYDRA_IFACE", "lo")
    monkeypatch.setenv("FI_PROVIDER", "tcp")
    return lambda count: f"{MPIEXEC} -n {count}"


@pytest.fixture
def data(tmp_path):
    return waves(tmp_path)


@pytest.fixture
def run(tmp_path, data, scratch_home):
    """Evaluate a code in a run of its own; return the evaluation."""
    runs = iter(range(9))

    async def _run(code=HOLD, *, mpi=None, python=sys.executable, **options):
        folder = tmp_path / f"run-{next(runs)}"
        given = {"workers": 1, "sandbox": RLIMITS, "mpi": mpi, "python": python}
        async with LocalEvaluator(folder, PROBLEM, data, ALONE, **given) as evaluator:
            return await evaluator.evaluate(request(data, code, **options))

    return _run


@pytest.fixture
def odd(tmp_path):
    """Return a Python whose rank 1 alone is given further arguments."""

    def _odd(*arguments: object) -> str:
        program = tmp_path / "odd"
        rank = f'[ "$PMI_RANK" = 1 ] && set -- "$@" {" ".join(map(str, arguments))}'
        program.write_text(f'#!/bin/sh\n{rank}\nexec {sys.executable} "$@"\n')
        program.chmod(0o755)
        return str(program)

    return _odd


async def test_ranks_score_exactly_as_processes_and_as_one(run, mpiexec):
    measures = ("two_grid",)
    whole = await run(measures=measures)
    local = await run(measures=measures, shards=2)
    two = await run(measures=measures, shards=2, mpi=mpiexec("{shards}"))
    several_each = await run(measures=measures, shards=3, mpi=mpiexec(2))
    one_idle = await run(measures=measures, shards=2, mpi=mpiexec(3))
    assert len(whole.scores.nrmse_per_sample) == 4
    for parts in (local, two, several_each, one_idle):
        assert parts.scores == whole.scores
        assert parts.checks == whole.checks
        assert parts.run_time_s is not None


async def test_every_rank_runs_its_share_and_rank_0_alone_writes(tmp_path, run, mpiexec):
    code = f"import os; open({str(tmp_path)!r} + f'/part-{{os.getpid()}}', 'w')\n{HOLD}"
    result = await run(code, shards=3, mpi=mpiexec(2))
    assert result.ok
    assert len(list(tmp_path.glob("part-*"))) == 3
    (folder,) = (tmp_path / "run-0" / "tasks").iterdir()
    assert {path.name for path in folder.iterdir()} == {"request.json", "result.json"}


async def test_a_failure_on_the_samples_of_one_rank_is_that_of_the_run(run, mpiexec):
    code = HOLD.replace("return", "assert u0_batch[0].argmax() != 48\n    return")
    failure = (await run(code, shards=2, mpi=mpiexec(2))).failure
    assert failure.kind == "exception"
    assert "AssertionError" in failure.message


async def test_a_hopeless_run_is_stopped_after_as_many_parts_as_ranks(tmp_path, run, mpiexec):
    code = f"import os; open({str(tmp_path)!r} + f'/part-{{os.getpid()}}', 'w')\n{HOLD}"
    result = await run(code, shards=4, abort_above=1e-6, mpi=mpiexec(2))
    assert result.failure.kind == "early_stopped"
    assert result.failure.message.startswith("It was stopped after 2 of 4 samples: their errors alone make")
    assert len(list(tmp_path.glob("part-*"))) == 2


async def test_a_machine_that_fails_one_rank_fails_all(tmp_path, run, odd, mpiexec):
    python = odd("--sandbox apptainer --image", tmp_path / "no.sif")
    with pytest.raises(InfrastructureError, match=r"ranks failed with exit code 1: rank 1: .*apptainer"):
        await run(shards=2, mpi=mpiexec(2), python=python)


async def test_an_unforeseen_error_on_one_rank_ends_all(tmp_path, run, odd, mpiexec):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "request.json").write_text("{}")
    with pytest.raises(InfrastructureError, match="exit code"):
        await run(shards=2, mpi=mpiexec(2), python=odd("--folder", tmp_path / "broken"))


STUCK = (
    "import os\nwith open({!r} + f'/part-{{os.getpid()}}', 'w') as file: file.write('x')\nwhile True: pass"
)


def _parts(folder: Path, count: int) -> list[int] | None:
    """Return the process ids of the parts once so many run."""
    found = [int(path.name[5:]) for path in folder.glob("part-*") if path.stat().st_size]
    return found if len(found) == count else None


def _gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has no working folder)."""
    return not Path(f"/proc/{pid}/cwd").exists()


def _rank_above(pid: int) -> int:
    """Return the rank that a candidate belongs to."""
    return next(above for above in _ranks() if pid in descendants(above))


def _ranks() -> list[int]:
    found = []
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found += [pid] if b"sharp.evaluation.ranks" in command and b"-n" not in command else []
    return found


async def until(condition, *arguments):
    """Wait until a condition holds; return its value."""
    async with asyncio.timeout(300):
        while not (value := condition(*arguments)):  # noqa: ASYNC110  other processes set no events
            await asyncio.sleep(0.02)
    return value


async def test_a_rank_that_is_killed_ends_all(tmp_path, run, mpiexec):
    stuck = STUCK.format(str(tmp_path))
    evaluation = asyncio.create_task(run(stuck, shards=2, mpi=mpiexec(2)))
    parts = await until(_parts, tmp_path, 2)
    os.kill(_rank_above(parts[0]), signal.SIGKILL)
    with pytest.raises(InfrastructureError, match=r"ranks failed with exit code 9: .*Killed"):
        await asyncio.wait_for(evaluation, 300)
    for part in parts:
        await until(_gone, part)


async def test_cancelling_ends_all_ranks(tmp_path, run, mpiexec):
    evaluation = asyncio.create_task(run(STUCK.format(str(tmp_path)), shards=2, mpi=mpiexec(2)))
    parts = await until(_parts, tmp_path, 2)
    family = [*parts, *_ranks()]
    assert len(family) == 4
    evaluation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(evaluation, 300)
    for pid in family:
        await until(_gone, pid)


CREW = """
from mpi4py import MPI
from hpc.errors import InfrastructureError
from sharp.evaluation.mpi_executor import CollectiveError, MpiExecutor
comm = MPI.COMM_WORLD
crew = MpiExecutor(comm, None)
def run(_, item):
    if item == "bad": raise InfrastructureError("no disk")
    return item, comm.rank
found = [crew.map(run, "abcde"), crew.map(run, "x"), crew.map(run, ""), crew.broadcast_decision(lambda: comm.rank + 7)]
try:
    crew.map(run, ["good", "good", "good", "bad"])
except CollectiveError as error:
    found.append(str(error))
if every := comm.gather(found):
    print(every)
"""


def test_a_crew_of_ranks_keeps_the_order_and_shares_errors(mpiexec):
    command = [*mpiexec(2).split(), sys.executable, "-P", "-c", CREW]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    shares = [(letter, number % 2) for number, letter in enumerate("abcde")]
    expected = [shares, [("x", 0)], [], 7, "rank 1: no disk"]
    assert ast.literal_eval(done.stdout) == [expected, expected]


def test_missing_packages_are_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert ranks.main(["--folder", str(tmp_path)]) == 1
    assert "mpi4py cannot be loaded" in (said := capsys.readouterr().err)
    assert "pip install 'pde-sharp[mpi]'" in said


async def test_a_launcher_that_is_not_there(run):
    with pytest.raises(InfrastructureError, match=r"could be started: .*no-such-launcher"):
        await run(shards=2, mpi="no-such-launcher -n {shards}")


async def test_ranks_have_a_limit_of_time(tmp_path, scratch_home):
    started = await start_process(["sh", "-c", "exec sleep 600"], {})
    with pytest.raises(InfrastructureError, match=r"did not end within 0\.1 s"):
        await started.finish(0.1)
    await started.kill()


async def test_one_shard_needs_no_launcher(run):
    assert (await run(mpi="no-such-launcher")).ok


async def test_results_are_the_same_task_whatever_the_launcher(tmp_path, data):
    evaluators = [
        LocalEvaluator(tmp_path, PROBLEM, data, SPLITS, workers=1, mpi=mpi) for mpi in (None, "srun")
    ]
    one, other = (evaluator.task(request(data, shards=2)) for evaluator in evaluators)
    assert one == other


def test_words_of_a_launcher():
    assert launcher_command("srun -n {shards} --job-name 'a b'", 3) == [
        "srun",
        "-n",
        "3",
        "--job-name",
        "a b",
    ]


@pytest.mark.parametrize(
    "text", ["", "  ", "mpiexec -n {ranks}", "mpiexec -n {}", "mpiexec {", "srun 'x", "a {shards.x}"]
)
def test_what_is_no_launcher_is_refused(text):
    with pytest.raises(ValueError, match=r"no placeholder but \{shards\}"):
        checked_launcher(text)
    with pytest.raises(ValueError, match=r"evaluation|mpi"):
        EvaluationOptions(mpi=text)


def test_ranks_get_settings_but_no_tokens(monkeypatch):
    for name in ("FI_PROVIDER", "SLURM_JOB_ID", "SLURM_JWT", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "value")
    assert {"FI_PROVIDER", "SLURM_JOB_ID"} <= (found := launcher_settings()).keys()
    assert not {"SLURM_JWT", "OPENAI_API_KEY"} & found.keys()


def test_the_reason_is_what_a_rank_said():
    assert reason(["1: sharp.evaluation.ranks: rank 1: no disk", "Abort(1) on node 1"]) == "rank 1: no disk"
    assert reason(["one", "", "two", "three", "four"]) == "two three four"
    assert reason([]) == "no output"


def test_a_trial_over_ranks(data, mpiexec, scratch_home):
    options = {"data": data.path, "samples": 4, "sandbox": RLIMITS, "shards": 2}
    local, over = (
        evaluate_solver(PROBLEM, HOLD, SolverEvaluationOptions(**options, mpi=mpi))
        for mpi in (None, mpiexec(2))
    )
    assert over.evaluation.scores == local.evaluation.scores


@pytest.mark.parametrize(("mpi", "shards"), [("mpiexec -n 2", 1), ("mpiexec -n {ranks}", 2)])
def test_a_trial_that_cannot_use_its_launcher(data, mpi, shards):
    with pytest.raises(ConfigurationError, match="--mpi: expected"):
        evaluate_solver(
            PROBLEM, HOLD, SolverEvaluationOptions(data=data.path, samples=4, shards=shards, mpi=mpi)
        )
