"""Programs that are the same up to how they are written, variants of constants, and what must not pass for the same."""

from __future__ import annotations

import pytest

from sharp.evaluation import normal_form

SOLVER = '''"""A scheme."""
import numpy as np
import jax.numpy as jnp
from scipy.integrate import solve_ivp

CFL = 0.4


def rhs(time, state, dx=0.1):
    """Return slopes."""
    total = 0
    for term in (1, 2):
        total = total + term * jnp.roll(state, -term)
    return total / dx


def solver(u0_batch, t_coordinate, beta):
    # Print the step.
    step = CFL * 2
    print(f"dt={step}")
    return solve_ivp(rhs, (0, step), u0_batch, method="RK45", max_step=step)
'''
REWRITTEN = '''from scipy.integrate import solve_ivp as integrate
from jax import numpy as xp
import numpy
COURANT = 4e-1
def _slopes(moment, values, spacing=0.1):
    result = 0
    for part in (1, 2):
        result = result + part * xp.roll(values, -part)
    return result / spacing
def solver(u0_batch, t_coordinate, beta):
    """Solve."""
    h = COURANT * 2
    print(f"dt={h}")
    return integrate(_slopes, (0, h), u0_batch, method="RK45", max_step=h)
'''


def test_names_comments_layout_and_the_order_of_imports_do_not_count() -> None:
    assert normal_form(REWRITTEN) == normal_form(SOLVER)


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        ("0.4", "0.5", [("CFL", "0.4", "0.5")]),
        ("RK45", "BDF", [("method", "'RK45'", "'BDF'")]),
        ("dx=0.1", "dx=0.2", [("dx", "0.1", "0.2")]),
        ("(1, 2)", "(1, 4)", [("line 12", "2", "4")]),
    ],
)
def test_another_constant_makes_a_variant_which_is_not_the_same(
    old: str, new: str, differences: list[tuple[str, str, str]]
) -> None:
    form, other = normal_form(SOLVER), normal_form(SOLVER.replace(old, new))
    assert other.structure == form.structure
    assert other != form
    assert form.differences(other) == differences


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total + term", "total - term"),
        ("jnp.roll", "np.roll"),
        ("jax.numpy as jnp", "numpy as jnp"),
        ("-term)", "-total)"),
        ("max_step=step", "first_step=step"),
        ("import solve_ivp", "import odeint as solve_ivp"),
        ("return total / dx", "return total"),
        ("u0_batch, t_coordinate", "t_coordinate, u0_batch"),
        ("def solver(", "def solve("),
        ("CFL * 2", "CFL * True"),
        ("CFL * 2", "-CFL * 2"),
    ],
)
def test_what_a_run_could_show_makes_another_program(old: str, new: str) -> None:
    changed = SOLVER.replace(old, new)
    assert changed != SOLVER
    assert normal_form(changed) != normal_form(SOLVER)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # A name that is found by its spelling.
        ("def f(n):\n    return n\nx = f(n=1)\n", "def f(m):\n    return m\nx = f(n=1)\n"),
        ("class A:\n    a = 1\nx = A.a\n", "class A:\n    b = 1\nx = A.a\n"),
        ("def f():\n    a = 1\n    return eval('a')\n", "def f():\n    b = 1\n    return eval('a')\n"),
        ("step = 1\ng = globals()['step']\n", "size = 1\ng = globals()['step']\n"),
        # A variable of the module beside one of a function.
        (
            "x, y = 1, 2\ndef f():\n    x = 5\n    return x\n",
            "x, y = 1, 2\ndef f():\n    global x\n    x = 5\n    return x\n",
        ),
        (
            "x, z = 1, 2\ndef f():\n    def g():\n        x = 5\n        return x\n    return x + g()\n",
            "x, z = 1, 2\ndef f():\n    def g():\n        z = 5\n        return z\n    return z + g()\n",
        ),
        # A name that hides what is built in.
        ("y = max(1, 2)\nmax = 3\n", "y = most(1, 2)\nmost = 3\n"),
        # What is set before an import may change what is imported.
        ("import os\nos.environ['A'] = 'b'\nimport jax\n", "import os\nimport jax\nos.environ['A'] = 'b'\n"),
    ],
)
def test_names_are_exchanged_only_where_that_means_the_same(one: str, other: str) -> None:
    assert normal_form(one) != normal_form(other)


def test_the_name_that_is_called_and_its_arguments_stay() -> None:
    assert normal_form("def run(u):\n    return u\n", "run") != normal_form(
        "def run(v):\n    return v\n", "run"
    )
    assert normal_form("def run(u):\n    return u\n") == normal_form("def go(v):\n    return v\n")


def test_source_that_does_not_parse_is_the_same_as_its_own_text_alone() -> None:
    broken = "def solver(:\n    pass\n"
    assert normal_form(broken) == normal_form(broken + "\n")
    assert normal_form(broken) != normal_form(broken.replace("pass", "return"))
