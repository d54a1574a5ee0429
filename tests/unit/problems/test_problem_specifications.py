"""The shipped problems, and what a problem's hash stands for."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from sharp.errors import SpecificationError
from sharp.problems import list_problems, load_problem, parse_problem, render_description, render_template
from sharp.problems.families import FAMILIES
from tests.helpers.problems.specifications import specification

IDS = ("advection", "burgers", "darcy", "navier-stokes", "reaction-diffusion")

SMALL = specification("periodic-wave")


def test_the_five_problems_are_listed() -> None:
    assert tuple(list_problems()) == IDS


@pytest.mark.parametrize(
    ("name", "parameters", "signature", "shapes", "best"),
    [
        (
            "advection",
            {"beta": 0.1},
            ("u0_batch", "t_coordinate", "beta"),
            {"u": ("batch", "T+1", "N")},
            5.24e-4,
        ),
        (
            "burgers",
            {"nu": 0.01 / math.pi},
            ("u0_batch", "t_coordinate", "nu"),
            {"u": ("batch", "T+1", "N")},
            1.05e-4,
        ),
        (
            "reaction-diffusion",
            {"nu": 0.5, "rho": 1.0},
            ("u0_batch", "t_coordinate", "nu", "rho"),
            {"u": ("batch", "T+1", "N")},
            2.29e-3,
        ),
        (
            "navier-stokes",
            {"eta": 0.1, "zeta": 0.1, "Gamma": 5 / 3},
            ("Vx0", "density0", "pressure0", "t_coordinate", "eta", "zeta"),
            dict.fromkeys(["Vx", "density", "pressure"], ("batch", "T+1", "N")),
            1.27e-2,
        ),
        ("darcy", {"beta": 1.0}, ("a",), {"u": ("batch", "N", "N")}, 3.42e-3),
    ],
)
def test_the_shipped_problems(
    name: str,
    parameters: dict[str, float],
    signature: tuple[str, ...],
    shapes: dict[str, tuple[str, ...]],
    best: float,
) -> None:
    problem = load_problem(name)
    assert problem.id == name
    assert dict(problem.parameters) == parameters
    assert problem.interface.function == "solver"
    assert problem.interface.arguments == signature
    assert {port.name: port.shape for port in problem.interface.returns} == shapes
    assert problem.family in FAMILIES
    assert problem.published is not None
    assert problem.published.nrmse == best
    assert problem.label == f"{name}@{problem.hash[:12]}"
    assert problem.limits.memory_mb == 8000
    assert problem.limits.wall_s == (2400 if name in ("reaction-diffusion", "navier-stokes") else 1200)


def test_grids_of_the_shipped_problems() -> None:
    burgers, flow, darcy = (load_problem(name) for name in ("burgers", "navier-stokes", "darcy"))
    assert burgers.bounds == {"x": (0.0, 1.0)}
    assert burgers.time == (0.0, 2.0)
    assert burgers.spacing == {"x": 1 / 1024}
    assert (burgers.grid.kind, burgers.grid.times) == ("cells", 201)
    assert flow.bounds == {"x": (-1.0, 1.0)}
    assert flow.spacing == {"x": 2 / 1024}
    assert (darcy.time, darcy.time_name, darcy.grid.times, darcy.data.time_key) == (None, None, None, None)
    assert darcy.spacing == {"x": 1 / 420, "y": 1 / 420}
    assert (darcy.data.inputs, darcy.data.returns) == ({"a": "coeff"}, {"u": "sol"})
    assert flow.data.returns == {"Vx": "Vx", "density": "density", "pressure": "pressure"}


def test_loading_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from sharp.problems import list_problems, load_problem, render_description, render_latex, render_template\n"
        "for problem in map(load_problem, list_problems()):\n"
        "    render_description(problem), render_template(problem), render_latex(problem)\n"
        "print([m for m in ('sympy', 'numpy', 'scipy', 'jax', 'h5py', 'zarr') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_problems_travel_to_workers() -> None:
    problem = load_problem("navier-stokes")
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert copy.hash == problem.hash
    assert {problem: 1}[copy] == 1


def test_the_hash_is_pinned() -> None:
    digest = "5ad7b6c25de60ac152801f1dcd1e9dfd893aff01d36d200a71b4eb7b2c60482d"
    assert parse_problem(SMALL, "wave.yaml").hash == digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("id: wave", "# a remark\nid:   'wave'"),
        ("title: A wave", "title: >-\n  A\n    wave"),
        ("fields: [u]", "fields:\n  - u"),
        ("c: 0.5, d: 2", 'c: 5e-1, d: "2.0"'),
        ("c: 0.5", "c: {value: .5}"),
        ("{wall_s: 60}", "{memory_mb: 8000, wall_s: 60.0}"),
        ("pde_spec: 1\n", "tags: [a]\npublished: {nrmse: 0.1, source: me}\npde_spec: 1\nfamily: other\n"),
        ("u_t: 0", "u_t: {expression: 0}"),
    ],
)
def test_what_does_not_matter_changes_neither_hash_nor_prompts(old: str, new: str) -> None:
    assert SMALL.count(old) == 1
    first, second = parse_problem(SMALL, "wave.yaml"), parse_problem(SMALL.replace(old, new), "wave.yaml")
    assert first.hash == second.hash
    assert render_description(first) == render_description(second)
    assert render_template(first) == render_template(second)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: A wave", "title: The wave"),
        ("id: wave", "id: waves"),
        ("c: 0.5, d: 2", "c: 0.25, d: 2"),
        ("c: 0.5, d: 2", "d: 2, c: 0.5"),
        ("c**2*u_xx", "d*u_xx"),
        ("time: [0, 1]", "time: [0, 2]"),
        ("x: 64", "x: 128"),
        ("wall_s: 60", "wall_s: 61"),
        ("title: A wave", "title: A wave\nnotes: [It moves.]"),
        ("parameters: [c]", "parameters: [d]"),
        ("returns: {u: u}", "returns: {u: v}"),
        ("u_t: 0", "u_t: {family: sine-sums}"),
    ],
)
def test_what_matters_changes_the_hash(old: str, new: str) -> None:
    text = SMALL.replace(old, new)
    assert text != SMALL
    if "sine-sums" in new:
        text = text.replace(
            "shape: [batch, N]}]", "shape: [batch, N]}, {name: v0, field: u_t, shape: [batch, N]}]"
        )
        text = text.replace("u0: u}", "u0: u, v0: v}")
    assert parse_problem(text, "wave.yaml").hash != parse_problem(SMALL, "wave.yaml").hash


def test_a_users_problem_is_found_and_hides_a_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "problems"
    folder.mkdir(parents=True)
    (folder / "wave.yaml").write_text(SMALL)
    (folder / "burgers.yaml").write_text(SMALL.replace("id: wave", "id: burgers"))
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    assert tuple(list_problems()) == tuple(sorted([*IDS, "wave"]))
    assert load_problem("wave").id == "wave"
    assert load_problem("burgers").title == "A wave"
    assert load_problem(folder / "wave.yaml") == load_problem(str(folder / "wave.yaml"))
    (folder / "waves.yaml").write_text(SMALL)
    assert load_problem(folder / "waves.yaml").id == "wave"
    with pytest.raises(
        SpecificationError, match="expected the id 'waves', as the file is called, found 'wave'"
    ):
        load_problem("waves")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("burgers", "u_t + (u**2/2)_x = nu*u_xx", "u_t = nu*u_xx - u*u_x"),
        ("advection", "u_t + beta*u_x = 0", "(beta*u)_x = -u_t"),
        ("reaction-diffusion", "u_t - nu*u_xx = rho*u*(1 - u)", "u_t = (nu*u_x)_x + rho*u - rho*u**2"),
        ("darcy", "-div(a*grad(u)) = beta", "(a*u_x)_x + (a*u_y)_y + beta = 0"),
    ],
)
def test_the_equation_of_a_family_may_be_written_otherwise(name: str, old: str, new: str) -> None:
    text = list_problems()[name].read_text()
    assert parse_problem(text.replace(old, new), name).specification.equations == (new,)


@pytest.mark.parametrize(
    ("name", "old", "new", "wanted"),
    [
        ("burgers", "nu*u_xx", "nu/pi*u_xx", "equation 'u_t + (u**2/2)_x = nu*u_xx'"),
        ("advection", "beta*u_x = 0", "beta*u_x = sin(x)", "equation 'u_t + beta*u_x = 0'"),
        (
            "navier-stokes",
            "density_t + (density*Vx)_x = 0",
            "density_t + density*Vx_x = 0",
            "equation 'density_t",
        ),
        ("darcy", "value: 0}", "value: 1}", "conditions {type: dirichlet, where: all, field: u, value: 0}"),
        ("darcy", "a: {", "b: {", "coefficients a; found b"),
    ],
)
def test_another_equation_is_not_of_the_family(name: str, old: str, new: str, wanted: str) -> None:
    text = list_problems()[name].read_text()
    assert old in text
    with pytest.raises(SpecificationError) as caught:
        parse_problem(text.replace(old, new).replace("a*grad", "b*grad" if "b: {" in new else "a*grad"), name)
    assert f"has the {wanted}" in str(caught.value)
    assert "otherwise use family: other" in str(caught.value)
