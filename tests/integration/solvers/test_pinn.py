from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sympy

import sharp.solvers.pinn.method as module
from sharp.errors import ConfigurationError, DataError
from sharp.problems import parse_problem
from sharp.problems.cases import load_case
from sharp.problems.programs import compile_expressions
from sharp.problems.serialisation import to_yaml
from sharp.solvers.exact import exact_errors
from sharp.solvers.method import Deadline, SolverFailed, TimeLimitExceeded, all_methods, load_method
from sharp.solvers.pinn.ansatz import RESULT, Ansatz, Function, Network, PinnConfig, TrainedNetwork, ansatz_of
from sharp.solvers.pinn.method import Pinn
from sharp.solvers.pinn.scales import equation_scales, field_scales
from sharp.solvers.recommend import recommend
from sharp.solvers.system import FirstOrderSystem, system_of
from tests.helpers.problems.specifications import specification
from tests.helpers.solvers.solving_fakes import DISK, HEAT, MODES, PLATE, TRIANGLE, WAVE, problem_of

RING = specification("advected-ring")

BENDING = specification("bending")


def system(text: str, **changes: str) -> FirstOrderSystem:
    return system_of(problem_of(text, **changes))


def random_network(ansatz: Ansatz, seed: int = 1) -> Network:
    widths = [len(ansatz.features.outputs), 5, 5, len(ansatz.forms)]
    draw = np.random.default_rng(seed)
    pairs = pairwise(widths)
    return Network(tuple((draw.normal(size=(b, a)), draw.normal(size=b)) for a, b in pairs))


def untrained(text: str) -> Function:
    ansatz = ansatz_of(system(text))
    return Function(ansatz, random_network(ansatz), np.zeros(len(ansatz.forms)))


SHORT_WAVE = WAVE.replace("time: [0, 1]", "time: [0, 0.25]")


# What is refused, and what is not imported.


def test_without_deepxde_the_refusal_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    refusal = load_method("pinn").unsupported_reason(system(HEAT))
    assert refusal == "needs DeepXDE, which is not installed: pip install 'pde-sharp[pinn]'"
    with pytest.raises(ConfigurationError, match=r"pip install 'pde-sharp\[pinn\]'"):
        recommend(system(HEAT), all_methods(), "pinn")


def test_eigenvalues_are_refused_and_boundary_value_problems_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    assert "eigenvalue" in str(Pinn().unsupported_reason(system(MODES)))
    assert not any(Pinn().unsupported_reason(system(text)) for text in (HEAT, WAVE, DISK, PLATE, TRIANGLE))


def test_networks_are_trained_only_for_those_who_ask_and_never_check_another_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    methods = all_methods()
    of_itself = [found.method.name for found in recommend(system(HEAT), methods).recommendations]
    asked_for = [found.method.name for found in recommend(system(HEAT), methods, "pinn").recommendations]
    assert "pinn" not in of_itself
    assert asked_for == ["pinn", *of_itself]


def test_this_process_never_imports_what_trains() -> None:
    asked = "import sys; from sharp.solvers import method; method.all_methods(); print(*sys.modules)"
    command = [sys.executable, "-c", asked]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "sharp.solvers.pinn.method" in loaded
    assert not {"torch", "deepxde"} & set(loaded)


# The network by numpy.


def test_a_network_computes_what_can_be_computed_by_hand() -> None:
    network = Network(
        (
            (np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([0.5, 0.0])),
            (np.array([[3.0, -2.0]]), np.array([0.25])),
        )
    )
    found = network(np.array([[0.5, -0.5], [0.0, 1.0]]))
    by_hand = [3 * np.tanh(0.0) - 2 * np.tanh(0.5) + 0.25, 3 * np.tanh(2.5) - 2 * np.tanh(-1.0) + 0.25]
    assert found[:, 0] == pytest.approx(by_hand, rel=1e-15)
    assert network.size == 9


def test_any_network_keeps_initial_and_dirichlet_values_in_a_box() -> None:
    u = untrained(HEAT)
    x, t = np.linspace(0, 1, 7)[:, None], np.linspace(0, 1, 5)
    assert u(x, np.zeros(1))[0, 0] == pytest.approx(np.sin(np.pi * x[:, 0]) + 2 * x[:, 0], abs=1e-14)
    assert u(x, t)[0, :, [0, -1]] == pytest.approx(np.array([[0.0], [2.0]]).repeat(5, axis=1), abs=1e-14)
    assert np.ptp(u(x, t)[0, :, 3]) > 0.01


def test_any_network_keeps_the_initial_velocity() -> None:
    u, x, step = untrained(WAVE), np.linspace(0.1, 0.9, 5)[:, None], 1e-6
    before, after = u(x, np.array([0.0, step]))[0]
    assert before == pytest.approx(np.zeros(5), abs=1e-14)
    assert (after - before) / step == pytest.approx(4 * np.pi * np.sin(2 * np.pi * x[:, 0]), abs=1e-3)


def test_values_on_three_sides_of_a_rectangle_are_interpolated_together() -> None:
    u, wanted = untrained(BENDING), lambda points: points[:, 0] ** 2 + points[:, 1] ** 2
    s = np.linspace(0, 1, 9)
    for points in (
        np.column_stack([-np.ones(9), 3 * s]),
        np.column_stack([np.ones(9), 3 * s]),
        np.column_stack([2 * s - 1, np.zeros(9)]),
    ):
        assert u(points, np.zeros(1))[0, 0] == pytest.approx(wanted(points), abs=1e-13)
    assert [each.part for each in u.ansatz.conditions] == ["y+"]


def test_along_a_periodic_axis_a_network_repeats_with_its_derivatives() -> None:
    u, step = untrained(RING), 1e-5
    around = np.array([1 - step, 1, 1 + step])[:, None]
    first, second = u(around, np.ones(1))[0, 0], u(around + 2, np.ones(1))[0, 0]
    assert first == pytest.approx(second, abs=1e-12)
    assert abs(first[2] - first[0]) > step * 1e-3


def test_steady_fields_have_the_same_values_at_all_times() -> None:
    found = untrained(DISK)(np.array([[0.1, 0.2], [0.0, 0.5]]), np.arange(3.0))
    assert found.shape == (1, 3, 2)
    assert np.ptp(found, axis=1) == pytest.approx(np.zeros((1, 2)))


# What is built in, and what is left to training.


def test_round_domains_leave_their_boundary_to_training_and_keep_their_start() -> None:
    ansatz = ansatz_of(system_of(load_case("heat-brass-disk").problem))
    assert ansatz.forms[0].built_in
    assert ansatz.starts == ()
    assert {each.part for each in ansatz.conditions} == {"outer"}


@pytest.mark.parametrize("state", ["abs(x - 1/2) - 1/2 + 2*x", "sin(pi*x) + 2*x + 1", "min(4*x, 2)"])
def test_states_with_kinks_or_that_miss_the_boundary_values_are_left_to_training(state: str) -> None:
    text = HEAT.replace("sin(pi*x) + 2*x}", f'"{state}"}}', 1)
    text = text.partition("reference:")[0] + "allow: [corner-jump]\n"
    ansatz = ansatz_of(system(text))
    assert not ansatz.forms[0].built_in
    assert [component.order for component in ansatz.starts] == [0]
    assert [each.part for each in ansatz.conditions] == ["x-", "x+"]


def test_of_a_second_order_problem_only_conditions_on_the_field_itself_are_trained() -> None:
    text = WAVE.replace("type: dirichlet", "type: neumann")
    ansatz = ansatz_of(system(text.partition("reference:")[0]))
    kept = [(ansatz.system.components[each.component].order, each.part) for each in ansatz.conditions]
    assert kept == [(0, "x-"), (0, "x+")]


def test_sizes_follow_from_the_data_whatever_their_units() -> None:
    small = system(HEAT)
    large = system(
        HEAT.replace("sin(pi*x) + 2*x}", "1e9*(sin(pi*x) + 2*x)}", 1)
        .replace("value: 2}", "value: 2e9}")
        .partition("reference:")[0]
    )
    (one,), (other,) = field_scales(small), field_scales(large)
    assert other.size == pytest.approx(1e9 * one.size)
    assert other.level == pytest.approx(1e9 * one.level)
    assert 0.3 < one.size < 3
    assert equation_scales(large, [other]) == pytest.approx(1e9 * equation_scales(small, [one]))


def test_where_all_data_vanish_the_source_gives_the_size() -> None:
    text = DISK.replace("lap(u) = 4", "lap(u) = 4e6").replace("a: 1, b: 1, value: -2", "a: 1, b: 1, value: 0")
    (scale,) = field_scales(system(text.partition("reference:")[0]))
    assert 1e5 < scale.size < 1e7


# Files.


def stored(folder: Path, ansatz: Ansatz) -> TrainedNetwork:
    trained = TrainedNetwork(random_network(ansatz), {"loss": 0.01, "seed": 0})
    trained.write(folder)
    return trained


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = stored(tmp_path, ansatz_of(system(HEAT)))
    found = TrainedNetwork.read(tmp_path, 2, 1)
    assert found.facts == written.facts
    features = np.array([[0.3, -0.2]])
    assert np.array_equal(found.network(features), written.network(features))


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    settings = PinnConfig(16, 200, 1e9, 1e-4, 100, 200, seed=7)
    settings.write(tmp_path)
    assert PinnConfig.read(tmp_path) == settings


def arrays(**changes: object) -> dict[str, object]:
    whole: dict[str, object] = {
        "facts": np.array("{}"),
        "weight 0": np.ones((1, 2)),
        "bias 0": np.ones(1),
    }
    return {name: value for name, value in (whole | changes).items() if value is not None}


@pytest.mark.parametrize(
    "damage",
    [
        {"weight 0": np.full((1, 2), np.nan)},
        {"weight 0": np.ones((1, 3))},
        {"weight 0": np.ones(2)},
        {"weight 0": np.array([["a", "b"]])},
        {"bias 0": None},
        {"weight 0": None, "bias 0": None},
        {"facts": None},
        {"facts": np.array("no JSON")},
        {"facts": np.array([{"a": 1}], dtype=object)},
        {"weight 0": np.ones((2, 2)), "bias 0": np.ones(2)},
    ],
)
def test_a_damaged_result_is_an_error_that_names_the_file(tmp_path: Path, damage: dict[str, object]) -> None:
    np.savez(tmp_path / RESULT, **arrays(**damage))  # type: ignore[arg-type]
    with pytest.raises(DataError, match=RESULT):
        TrainedNetwork.read(tmp_path, 2, 1)


@pytest.mark.parametrize("kept", [None, 0, 10, 100, -40])
def test_a_result_that_was_cut_off_or_lost_is_an_error_that_names_the_file(
    tmp_path: Path, kept: int | None
) -> None:
    stored(tmp_path, ansatz_of(system(HEAT)))
    whole = (tmp_path / RESULT).read_bytes()
    (tmp_path / RESULT).unlink()
    if kept is not None:
        (tmp_path / RESULT).write_bytes(whole[:kept])
    with pytest.raises(DataError, match=RESULT):
        TrainedNetwork.read(tmp_path, 2, 1)


@pytest.mark.parametrize(
    "name", ["heat-rod-two-ends", "wave-coupled-strings", "poisson-layered-crystal", "laplace-l-corner"]
)
def test_the_worker_is_given_the_same_problem(name: str) -> None:
    problem = load_case(name).problem
    assert parse_problem(to_yaml(problem), "problem.yaml").hash == problem.hash


# The process that trains, played by scripts.

WRITES = """
import sys, json
from pathlib import Path
import numpy as np
folder = Path(sys.argv[1])
print("much" * 1000)
print("more", file=sys.stderr)
settings = json.loads((folder / "settings.json").read_text())
assert (folder / "problem.yaml").read_text().startswith("pde_spec")
facts = json.dumps({"width": settings["width"], "seed": settings["seed"], "list": [1]})
np.savez(folder / "result.npz", **{"weight 0": np.zeros((1, 2)), "bias 0": np.zeros(1), "facts": np.array(facts)})
"""
FAILS = "import sys; print('first'); sys.exit('the loss was never finite')"
SLEEPS = """
import subprocess, sys, time
from pathlib import Path
child = subprocess.Popen(["sleep", "600"])
Path({note!r}).write_text(str(child.pid))
time.sleep(600)
"""


def played(folder: Path, script: str) -> Pinn:
    path = folder / "script.py"
    path.write_text(script)
    return Pinn(worker=(sys.executable, str(path)))


def test_a_trained_network_becomes_a_solution_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    solution = played(tmp_path, WRITES).solve(system(HEAT), 12, 1e-3, Deadline.within(60))
    assert capfd.readouterr() == ("", "")
    assert (solution.method, solution.resolution, solution.unknowns) == ("pinn", 12, 3)
    assert solution.facts == {"width": 12, "seed": 0}
    assert solution.at(np.array([[0.5]]), 1.0)[0, 0] == pytest.approx(2.0)


def test_a_mean_that_is_given_is_met_after_training(tmp_path: Path) -> None:
    solution = played(tmp_path, WRITES).solve(system(PLATE), 12, 1e-3, Deadline.within(60))
    assert solution.at(np.array([[0.5, 0.2]]))[0, 0] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (FAILS, "exit code 1: the loss was never finite"),
        ("pass", f"left no network.*{RESULT}"),
    ],
)
def test_a_training_that_fails_or_leaves_nothing_is_reported(
    tmp_path: Path, script: str, message: str
) -> None:
    with pytest.raises(SolverFailed, match=message):
        played(tmp_path, script).solve(system(HEAT), 12, 1e-3, Deadline.within(60))


def test_at_the_deadline_the_training_and_all_that_it_started_are_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    pinn = played(tmp_path, SLEEPS.format(note=str(note)))
    ended = []
    for seconds in (1.0, 5.0, 20.0):  # until the script has come as far as its note
        with pytest.raises(TimeLimitExceeded, match="limit of time"):
            pinn.solve(system(HEAT), 12, 1e-3, Deadline.within(seconds))
        if note.exists() and note.read_text():
            ended.append(int(note.read_text()))
            break
    assert ended
    for _ in range(500):  # a process that was killed ends once it is next given a processor
        if not alive(ended[0]):
            return
        time.sleep(0.01)
    pytest.fail("what the training had started goes on")


def test_at_the_deadline_what_has_been_trained_so_far_is_the_solution(tmp_path: Path) -> None:
    pinn = played(tmp_path, WRITES + "import time; time.sleep(600)")
    for seconds in (2.0, 8.0, 30.0):  # until the script has come as far as its result
        with suppress(TimeLimitExceeded):
            assert pinn.solve(system(HEAT), 12, 1e-3, Deadline.within(seconds)).unknowns == 3
            return
    pytest.fail("no result of the script was used")


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def test_after_the_deadline_nothing_is_started(tmp_path: Path) -> None:
    with pytest.raises(TimeLimitExceeded):
        played(tmp_path, WRITES).solve(system(HEAT), 12, 1e-3, Deadline.within(-1))


def test_trainings_are_kept_from_mpi_from_graphics_cards_and_from_choosing_a_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    found = module._environment(3)
    assert "OMPI_COMM_WORLD_SIZE" not in found
    wanted = {"DDE_BACKEND": "pytorch", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "3"}
    assert wanted.items() <= found.items()
    assert found["PATH"] == os.environ["PATH"]


# With DeepXDE and torch.


@pytest.fixture
def installed() -> None:
    pytest.importorskip("torch")
    if module.find_spec("deepxde") is None:
        pytest.skip("DeepXDE is not installed")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("text", "most"),
    [
        (HEAT, 1e-2),
        (RING, 2e-2),
        (BENDING, 1e-3),
        (DISK, 5e-3),
        (TRIANGLE, 1e-2),
        (PLATE, 2e-2),
        (SHORT_WAVE, 5e-2),
    ],
    ids=["heat", "ring", "bending", "disk", "triangle", "plate", "wave"],
)
def test_short_trainings_solve_simple_problems(text: str, most: float) -> None:
    problem = problem_of(text)
    found = Pinn(adam=300, lbfgs=500).solve(system_of(problem), 12, 1e-6, Deadline.within(300))
    errors = exact_errors(problem, found)
    assert errors is not None
    assert errors.l2 < most


@pytest.mark.usefixtures("installed")
def test_the_same_seed_gives_the_same_network() -> None:
    pinn, points = Pinn(adam=60, lbfgs=50), np.array([[0.3], [0.7]])
    twice = [pinn.solve(system(HEAT), 8, 1e-6, Deadline.within(120)).at(points, 0.8) for _ in range(2)]
    assert np.array_equal(*twice)


@pytest.mark.usefixtures("installed")
def test_when_time_is_short_the_best_network_so_far_is_the_result(tmp_path: Path) -> None:
    (tmp_path / "problem.yaml").write_text(to_yaml(problem_of(HEAT)))
    PinnConfig(8, 64, time.monotonic(), 1e-6, 10**6, 10**6).write(tmp_path)
    module._run([*module._WORKER, str(tmp_path)], tmp_path / "log.txt", 1, Deadline.within(120))
    facts = TrainedNetwork.read(tmp_path, 2, 1).facts
    assert facts["ended as"] == "the limit of time was reached"
    assert facts["steps of adam"] <= 50
    assert json.dumps(facts["loss"]) != "Infinity"


def test_torch_computes_what_numpy_does_and_its_derivatives() -> None:
    torch = pytest.importorskip("torch")
    special = pytest.importorskip("scipy.special")
    x = sympy.Symbol("x", real=True)
    program = compile_expressions([sympy.besselj(0, 2 * x) + sympy.besselj(1, x)], ["x"])
    at = torch.tensor([0.0, 0.3, 2.0, 7.0], dtype=torch.float64, requires_grad=True)
    (value,) = program(at, library="torch")
    (slope,) = torch.autograd.grad(value.sum(), at, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), at)
    points = at.detach().numpy()
    assert value.detach().numpy() == pytest.approx(program(points)[0], abs=1e-7)
    assert slope.detach().numpy() == pytest.approx(
        -2 * special.j1(2 * points) + special.jvp(1, points), abs=1e-7
    )
    wanted = 4 * special.jvp(0, 2 * points, 2) + special.jvp(1, points, 2)
    assert bend.numpy() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.usefixtures("installed")
def test_numpy_evaluates_the_network_as_deepxde_does(tmp_path: Path) -> None:
    script = f"""
import numpy as np, torch
from pathlib import Path
from sharp.problems import parse_problem
from sharp.solvers.pinn.ansatz import Function, PinnConfig, ansatz_of
from sharp.solvers.pinn.worker import deepxde, layers_of, network_of
from sharp.solvers.system import system_of
deepxde.config.set_default_float("float64")
ansatz = ansatz_of(system_of(parse_problem({WAVE!r}, "wave.yaml")))
network = network_of(ansatz, PinnConfig(7, 64, 0.0, 1e-6, 1, 1))
points = np.random.default_rng(0).random((50, 1))
found = Function(ansatz, layers_of(network), np.zeros(1))(points, np.array([0.7]))[0, 0]
inputs = torch.as_tensor(np.column_stack([points, np.full(50, 0.7)]))
wanted = network(inputs).detach().numpy()[:, 0]
assert np.max(np.abs(found - wanted)) < 1e-13, np.max(np.abs(found - wanted))
"""
    command, environment = [sys.executable, "-c", script], dict(module._environment(1))
    subprocess.run(command, check=True, env=environment, cwd=tmp_path, capture_output=True)
