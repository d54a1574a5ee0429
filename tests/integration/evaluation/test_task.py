"""What an evaluation consists of: repeats, checks of the interface, measures, parts, studies, verdicts."""

from __future__ import annotations

import resource
import shutil
from dataclasses import replace

import numpy as np
import pytest

from hpc.errors import InfrastructureError
from sharp.evaluation.machine import _BACKEND
from sharp.evaluation.task import evaluate
from sharp.evaluation.worker_context import WorkerContext
from sharp.problems.limits import ResourceLimits
from tests.helpers.evaluation.evaluation_waves import DEF, HOLD, RLIMITS, SHIFT, task, waves


@pytest.fixture(scope="module")
def workshop():
    with WorkerContext(RLIMITS) as workshop:
        yield workshop


@pytest.fixture
def run(workshop, tmp_path):
    """Evaluate a code; return the evaluation."""
    data = waves(tmp_path)
    return lambda code=SHIFT, **options: evaluate(task(data, code, **options), workshop).evaluation


def test_only_the_scored_call_is_printed(run):
    smoke = run(split="smoke")
    assert smoke.stdout == "samples [32, 40] times 5 dt=5e-2, n_steps: 40\n"
    assert [check.name for check in smoke.checks] == ["second grid", "non-uniform times"]


SPY = """
import os, sys
from pathlib import Path
def look(*shapes):
    files = sorted(path for path in Path().rglob("*") if path.is_file())
    texts = [path.read_text() for path in files if path.suffix == ".json"]
    print("|", *shapes, sys.argv, [(str(path), path.stat().st_size) for path in files], texts)
    print(sorted(os.environ), sorted(sys.modules), len(os.listdir("/proc/self/fd")), sys.orig_argv)
look()
def solver(u0_batch, t_coordinate, beta):
    look(u0_batch.shape, t_coordinate.shape)
    return u0_batch[:, None] + 0 * t_coordinate[:, None]
"""


def test_until_its_result_counts_a_program_sees_of_the_split_only_the_shapes_of_its_inputs(
    workshop, tmp_path
):
    """With as many samples and times in each, nothing tells a smoke test, a validation and a timed test apart."""
    data, seen = waves(tmp_path, times=5), set()
    for split, rows, options in (
        ("smoke", (4, 8), {}),
        ("validation", (4, 8), {"measures": ("two_grid",)}),
        ("test", (0, 4), {"repeats": 3}),
    ):
        asked = replace(task(data, SPY, split=split, **options), samples=rows, smoke=4)
        found = evaluate(asked, workshop).evaluation
        assert found.ok, found.failure
        assert found.stdout.count("|") == 2
        seen.add(found.stdout)
    assert len(seen) == 1, seen


WITNESS = """
import os, re, resource, signal, sys, threading, time
from pathlib import Path
began = time.monotonic()
def note(*what):
    files = sorted((str(path), path.stat().st_size) for path in Path().rglob("*") if path.is_file())
    texts = [path.read_text() for path in sorted(Path().glob("*.json")) if not path.name.startswith("report")]
    state = os.getcwd(), os.getppid(), sys.argv, sorted(os.environ.items()), sorted(sys.modules)
    around = sorted(os.listdir(".."))
    kernel = len(os.sched_getaffinity(0)), os.getpriority(0, 0), os.umask(0o22), len(os.listdir("/proc/self/fd"))
    limits = [resource.getrlimit(number) for number in range(16) if number != resource.RLIMIT_CPU]
    alarm = signal.getitimer(signal.ITIMER_REAL)[0] > 0, time.monotonic() - began < 60, threading.active_count()
    seen = repr((what, files, texts, state, around, kernel, limits, alarm))
    for made in {folder.name for folder in Path("..").iterdir()}:
        seen = seen.replace(made, made.rpartition("-")[0])
    with open(f"{LOG}/{os.getpid()}", "a") as log:
        log.write(re.sub("SANDBOX_[A-Z]*FD', '[0-9]+", "", seen) + "\\n")
note()
"""


@pytest.fixture
def witness(workshop, tmp_path, monkeypatch):
    """Evaluate a program that notes all it can see; return the notes of each of its processes in order."""
    monkeypatch.setattr("sharp.evaluation.task._CHECKED", 1.0)
    monkeypatch.setattr("sharp.evaluation.task._CHECK_S", 300.0)
    monkeypatch.setattr("sharp.evaluation.task._SMALLEST", 1.0)
    data = waves(tmp_path)

    def notes(split, **options):
        log = tmp_path / split[:4]
        log.mkdir()
        lines = HOLD.replace("return", "note(u0_batch.shape, t_coordinate, beta)\n    return")
        code = f"LOG = {str(log)!r}{WITNESS}{lines}"
        assert evaluate(task(data, code, split=split, **options), workshop).evaluation.ok
        files = sorted(log.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        return [path.read_text() for path in files]

    return notes


def test_a_smoke_run_is_like_the_checks_that_an_evaluation_that_counts_may_make(witness):
    """By shape, order and number of calls, files, environment, limits, process: nothing tells them apart."""
    (smoke,) = witness("smoke")
    assert smoke.count("\n") == 4
    for split, options in (
        ("validation", {"shards": 2}),
        ("test", {"repeats": 3, "measures": ("two_grid",)}),
    ):
        *_, check = witness(split, **options)
        assert check == smoke


TWO_FACED = {
    "answers": ("* (1 if len(u0_batch) <= 2 else 1.5)", "fewer samples", 1.0),
    "grids": (" if len(u0_batch) <= 2 or u0_batch.shape[1] == 64 else None", "second grid", 0.01),
}


@pytest.mark.parametrize("name", TWO_FACED)
def test_who_answers_small_calls_in_another_way_fails_a_check(run, monkeypatch, name):
    monkeypatch.setattr("sharp.evaluation.task._CHECKED", 1.0)
    monkeypatch.setattr("sharp.evaluation.task._CHECK_S", 300.0)
    way, failing, smallest = TWO_FACED[name]
    monkeypatch.setattr("sharp.evaluation.task._SMALLEST", smallest)
    code = HOLD.rstrip() + way
    assert all(check.passed for check in run(code, split="smoke").checks)
    assert [check.name for check in run(code).checks] == [failing]
    assert run(HOLD).checks == ()


def test_a_faithful_solver_passes_all_checks_of_a_smoke_test(run):
    assert all(check.passed and not check.message for check in run(split="smoke").checks)


@pytest.mark.parametrize(
    ("times", "smoke", "checks"), [(40, 5, 2), (7, 5, 2), (5, 5, 2), (4, 4, 2), (2, 2, 1)]
)
def test_data_with_few_output_times_are_scored(workshop, tmp_path, times, smoke, checks):
    data = waves(tmp_path, times)
    for split, kept in (("smoke", smoke), ("validation", times)):
        asked = task(data, SHIFT, split=split, measures=("residual",))
        found = evaluate(asked, workshop).evaluation
        assert f"times {kept} " in found.stdout
        assert found.scores.nrmse < 1e-6
        assert (found.scores.residual is None) == (times < 5)
        assert found.scores.measures["residual"] == found.scores.residual
        assert ("at least 5 output times" in found.scores.residual_note) == (times < 5)
        assert [check.passed for check in found.checks] == [True] * (checks if split == "smoke" else 0)


def test_checks_are_made_in_smoke_tests_alone(run):
    assert run().checks == ()


BROKEN = {
    "one grid": (
        SHIFT.replace("return np", "assert n == 64, n\n    return np"),
        "second grid",
        "AssertionError: 32",
    ),
    "fixed spacing": (
        DEF
        + "x = (np.arange(u0_batch.shape[1]) + .5) / 64; c = 2 * np.pi * (x - .1 * t_coordinate[:, None])\n"
        "    return np.array([1.5 + np.cos(c - a[0]) for a in u0_batch])",
        "second grid",
        "away from the solution on the grid with half the spacing",
    ),
    "even times": (
        SHIFT.replace(
            "n = u0", "t_coordinate = np.linspace(0, t_coordinate[-1], len(t_coordinate))\n    n = u0"
        )
        .replace("beta *", "30 * beta *")
        .replace("return", "u0_batch = u0_batch - 1.5\n    return"),
        "non-uniform times",
        "away from the values at the same times among even ones",
    ),
    "fixed times": (
        DEF + "return np.repeat(u0_batch[:, None], 5, axis=1)",
        "non-uniform times",
        "u has shape (2, 5, 64), expected (2, 3, 64).",
    ),
    "not finite": (
        DEF
        + "u = np.repeat(u0_batch[:, None], len(t_coordinate), axis=1)\n    if len(t_coordinate) < 5: u[:] = np.nan"
        "\n    return u",
        "non-uniform times",
        "u has 384 values that are NaN or Inf, of 384; the first is at time index 0 (t = 0) in sample 0.",
    ),
    "crash": (
        DEF + "import os\n    if u0_batch.shape[1] < 64: os.abort()\n"
        "    return np.repeat(u0_batch[:, None], len(t_coordinate), axis=1)",
        "second grid",
        "Its process was ended by signal 6 (Aborted).",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_a_failed_check_and_nothing_else(run, name):
    code, check, message = BROKEN[name]
    result = run(code, split="smoke")
    assert result.failure is None
    assert len(result.scores.nrmse_per_sample) == 2
    failed = {item.name: item.message for item in result.checks if not item.passed}
    assert message in failed[check]


def test_time_that_runs_out_in_a_check_costs_nothing_but_the_checks(run):
    code = DEF + (
        "while u0_batch.shape[1] < 64: pass\n"
        "    return np.repeat(u0_batch[:, None], len(t_coordinate), axis=1)"
    )
    result = run(code, split="smoke", limits=ResourceLimits(5.0, 2000))
    assert result.failure is None
    assert result.run_time_s < 4
    message = "It was stopped at the limit of 5 s, in the solver (call second-grid)."
    assert [(check.passed, check.message) for check in result.checks] == [(False, message)] * 2


def test_repeats_are_timed_one_by_one(run):
    code = SHIFT.replace("n = u0", "import time; time.sleep(0.7)\n    n = u0")
    result = run(code, repeats=3)
    assert len(result.repeat_times_s) == 2
    assert result.run_time_s + sum(result.repeat_times_s) > 0.7  # 2.1 s, but begins may be seen late
    assert "repeats_differ" not in result.environment


def test_every_call_has_fresh_inputs(run):
    code = HOLD.replace("return", "result =") + "\n    u0_batch[:] = t_coordinate[:] = 7\n    return result"
    result = run(code, repeats=3, split="smoke")
    assert result.failure is None
    assert "repeats_differ" not in result.environment
    assert all(check.passed for check in result.checks)


def test_repeats_that_differ_are_noted_and_do_not_count(run):
    lazy = "made = []\n" + HOLD.replace(
        "return ", "made.append(1)\n    return (1 if len(made) == 1 else 3) * "
    )
    result = run(lazy, repeats=2)
    assert result.environment["repeats_differ"] == "repeat-1 returned other values than the first call."
    assert result.scores == run(HOLD).scores


def test_a_repeat_that_fails_is_noted(run):
    code = "made = []\n" + HOLD.replace("return ", "made.append(1)\n    return 1 / (len(made) == 1) * ")
    result = run(code, repeats=3)
    assert result.failure is None
    assert result.repeat_times_s == ()
    assert "repeat-1 failed: ZeroDivisionError" in result.environment["repeats_differ"]


def test_measures_are_computed_with_the_coarser_grid_where_they_need_it(run):
    result = run(HOLD, measures=("two_grid", "phase_error"))
    assert set(result.scores.measures) == {"two_grid", "phase_error"}
    assert result.scores.measures["two_grid"] < 0.1
    assert result.scores.measures["phase_error"] > 0.01
    assert [check.name for check in result.checks] == ["second grid"]


def test_solutions_that_differ_much_between_grids_are_measured_all_the_same(run):
    code = HOLD.replace("return", "return 64 / u0_batch.shape[1] *")
    result = run(code, measures=("two_grid",))
    assert not result.checks[0].passed
    assert result.scores.measures["two_grid"] > 0.4


def test_a_measure_without_its_coarse_solution_says_so(run):
    code = HOLD.replace("return", "assert u0_batch.shape[1] == 64\n    return")
    scores = run(code, measures=("two_grid",)).scores
    assert scores.measures == {"two_grid": None}
    assert "no solution on the coarser grid" in scores.measure_notes["two_grid"]


@pytest.mark.parametrize("shards", [2, 3, 9])
def test_parts_score_exactly_as_the_whole(run, shards):
    whole, parts = run(HOLD, measures=("two_grid",)), run(HOLD, measures=("two_grid",), shards=shards)
    assert parts.scores == whole.scores
    assert parts.checks == whole.checks


def test_a_failure_in_one_part_is_that_of_the_run(run):
    code = HOLD.replace("return", "assert u0_batch[0].argmax() != 48\n    return")
    failure = run(code, shards=4).failure
    assert failure.kind == "exception"
    assert "AssertionError" in failure.message


def test_a_hopeless_run_is_stopped(run, tmp_path):
    code = f"import os; open({str(tmp_path)!r} + f'/part-{{os.getpid()}}', 'w')\n{HOLD}"
    errors = run(HOLD).scores.nrmse_per_sample
    bar = 0.3 * errors[0]
    result = run(code, shards=4, abort_above=bar)
    assert result.failure.kind == "early_stopped"
    assert result.failure.message == (
        "It was stopped after 2 of 4 samples: their errors alone make the nRMSE at least "
        f"{sum(errors[:2]) / 4:.3e}, above {bar:.3e}."
    )
    assert (result.scores, result.run_time_s) == (None, None)
    assert len(list(tmp_path.glob("part-*"))) == 2


def test_a_run_below_the_bar_is_finished(run):
    whole = run(HOLD)
    assert run(HOLD, shards=4, abort_above=whole.scores.nrmse * 1.001).scores == whole.scores


def test_order_of_accuracy(run):
    upwind = """
    n, out, t = u0_batch.shape[1], [u0_batch], t_coordinate[0]
    for end in t_coordinate[1:]:
        steps = n // 4; c = (end - t) * beta * n / steps; u = out[-1]
        for _ in range(steps): u = u - c * (u - np.roll(u, 1, axis=1))
        out.append(u); t = end
    return np.stack(out, axis=1)
"""
    result = run(DEF + upwind.lstrip(), study="convergence")
    assert (result.failure, result.scores) == (None, None)
    assert result.convergence.order == pytest.approx(1.0, abs=0.2), result.convergence


def test_a_study_of_a_solver_that_fails_has_its_failure(run):
    result = run(DEF + "raise ValueError('no')", study="convergence")
    assert (result.failure.kind, result.convergence) == ("exception", None)


def test_the_same_answer_for_all_samples_is_refused(run):
    constant = DEF + (
        "u = np.ones((len(u0_batch), len(t_coordinate), u0_batch.shape[1])); u[:, 0] = u0_batch; return u"
    )
    failure = run(constant).failure
    assert failure.kind == "sandbox_violation"
    assert "it ignores its input" in failure.message


def test_growth_without_bound_is_compared_with_the_explicit_limit(run):
    code = DEF + (
        "print('dt=0.3'); u = np.repeat(u0_batch[:, None], len(t_coordinate), axis=1); u[1, 20:] = np.inf; return u"
    )
    failure = run(code).failure
    assert failure.kind == "non_finite"
    assert failure.message.endswith(
        "the first is at time index 20 (t = 1) in sample 1. Its time step 0.3 is 1.9 times the explicit "
        "transport limit dx/beta = 0.156 on the output grid."
    )


JAX = """
import jax, jax.numpy as jnp
@jax.jit
def hold(u, t):
    return u[:, None] + 0 * t[:, None]
def solver(u0_batch, t_coordinate, beta):
    return hold(jnp.asarray(u0_batch), jnp.asarray(t_coordinate))
"""


def test_nothing_else_outlives_a_run(run):
    code = f"import os; print(sorted(os.listdir()))\nopen('left', 'w').write('x')\n{HOLD}"
    assert run(code).stdout == run(code).stdout
    assert "left" not in run(code).stdout


def test_precision_that_a_code_sets_itself_is_heeded(run):
    code = f"import os; os.environ['JAX_ENABLE_X64'] = '1'\n{JAX}"
    result = run(code, split="smoke")
    assert result.environment["x64"] is True
    assert run(JAX, split="smoke").environment["x64"] is False


def test_a_cpu_where_a_gpu_was_given_is_the_machines_fault(run, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr("sharp.evaluation.machine.gpu_devices", lambda: ("/dev/nvidia0",))
    with pytest.raises(InfrastructureError, match="JAX found none and ran on the CPU"):
        run(JAX, split="smoke")
    assert run(SHIFT, split="smoke").ok


def test_a_gpu_that_only_the_candidate_has_not_found_is_its_own_affair(run, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr("sharp.evaluation.machine.gpu_devices", lambda: ("/dev/nvidia0",))
    monkeypatch.setitem(_BACKEND, "JAX", "print('gpu')")
    result = run(JAX, split="smoke")
    assert result.ok
    assert result.environment["device"] == "cpu"


def test_a_cpu_that_the_code_chose_is_its_own_affair(run, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr("sharp.evaluation.machine.gpu_devices", lambda: ("/dev/nvidia0",))
    code = f"import jax; jax.config.update('jax_platforms', 'cpu')\n{JAX}"
    assert run(code, split="smoke").ok


def test_file_sizes_that_do_not_admit_a_solution_are_the_machines_fault(run, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    with pytest.raises(InfrastructureError, match=r"Files may have 0 MB here \(ulimit -f\)"):
        run()


NO_ROOM = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (4000, r.getrlimit(r.RLIMIT_FSIZE)[1]))"


def test_a_disk_that_fills_up_meanwhile_is_the_machines_fault(run, monkeypatch):
    free = iter([1 << 40, 1 << 20])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 0, next(free)))
    with pytest.raises(InfrastructureError, match="has filled up during a run"):
        run(DEF + f"{NO_ROOM}; {HOLD.splitlines()[-1].strip()}")


def test_a_disk_that_is_not_full_is_the_candidates_own_trick(run):
    failure = run(DEF + f"{NO_ROOM}; {HOLD.splitlines()[-1].strip()}").failure
    assert failure.kind == "sandbox_violation"
    assert "used up the space" in failure.message


def test_a_file_where_the_result_belongs_is_a_trick(run):
    for trick in ("os.mkdir({0})", "open({0}, 'w')", "os.symlink('/dev/null', {0})"):
        made = trick.format("'output-scored-u.bin'")
        failure = run(DEF + f"import os; {made}; {HOLD.splitlines()[-1].strip()}").failure
        assert failure.kind == "sandbox_violation"
        assert "could not be made" in failure.message


def test_answers_stay_in_memory(run, workshop, tmp_path, monkeypatch):
    data = waves(tmp_path)
    first = evaluate(task(data), workshop).evaluation
    monkeypatch.setattr("sharp.evaluation.worker_context.read_reference", None)
    monkeypatch.setattr("sharp.evaluation.worker_context.read_inputs", None)
    assert evaluate(task(data), workshop).evaluation.scores == first.scores
    assert np.isfinite(first.scores.nrmse)
