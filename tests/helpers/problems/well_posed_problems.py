"""Well-posed problems of many kinds, each a neighbour of one that is not: nothing may be held against them."""

from __future__ import annotations

from typing import Any

import yaml

from sharp.problems import Problem, parse_problem


def value(where: str, given: object, field: str = "u") -> dict[str, object]:
    """A Dirichlet condition."""
    return {"where": where, "type": "dirichlet", "field": field, "value": given}


def slope(where: str, given: object, field: str = "u") -> dict[str, object]:
    """A Neumann condition."""
    return {"where": where, "type": "neumann", "field": field, "value": given}


def mixed(where: str, a: object, b: object, given: object, field: str = "u") -> dict[str, object]:
    """A Robin condition."""
    return {"where": where, "type": "robin", "field": field, "a": a, "b": b, "value": given}


def curvature(where: str, given: object, order: int = 2, field: str = "u") -> dict[str, object]:
    """A condition on a higher derivative along the normal."""
    return {"where": where, "type": "derivative", "field": field, "order": order, "value": given}


def ring(axis: str = "x") -> dict[str, object]:
    """A periodic axis."""
    return {"type": "periodic", "axis": axis}


def exact(**values: str) -> dict[str, object]:
    """A reference with an exact solution."""
    return {"kind": "exact", "value": values}


def box(**bounds: list[object]) -> dict[str, object]:
    """A box."""
    return {"type": "box", "bounds": bounds}


def document(
    equations: list[str] | str,
    boundary: list[dict[str, object]],
    initial: dict[str, object] | None = None,
    *,
    fields: str = "u",
    space: str = "x",
    domain: dict[str, object] | None = None,
    time: list[object] | None = None,
    **others: Any,
) -> str:
    """A specification in YAML: on unit lengths and, with an initial state, for unit time, unless told otherwise."""
    coordinates: dict[str, object] = {"space": list(space)}
    content: dict[str, object] = {
        "pde_spec": 1,
        "id": "problem",
        "title": "A problem",
        "coordinates": coordinates,
        "fields": list(fields),
        "equations": [equations] if isinstance(equations, str) else equations,
        "domain": domain or box(**{axis: [0, 1] for axis in space}),
        "boundary": boundary,
        **others,
    }
    if initial is not None:
        coordinates["time"] = "t"
        content |= {"time": time or [0, 1], "initial": initial}
    return yaml.safe_dump(content, sort_keys=False)


def problem(*args: Any, **kwargs: Any) -> Problem:
    """The problem of a document."""
    return parse_problem(document(*args, **kwargs), "problem.yaml")


HOT_MIDDLE = {"u": "sin(pi*x)"}
STILL = {"u": "sin(pi*x)", "u_t": 0}
BUMP = {"u": "sin(pi*x)*sin(pi*y)"}
L_SHAPE = {"type": "polygon", "vertices": [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]}
DISK = {"type": "disk", "radius": 1}
RING = {"type": "annulus", "inner": 1, "outer": 2}

WELL_POSED: dict[str, str] = {
    "heat": document(
        "u_t = u_xx", [value("all", 0)], HOT_MIDDLE, reference=exact(u="exp(-pi**2*t)*sin(pi*x)")
    ),
    "heat in three dimensions": document(
        "u_t = lap(u)", [ring("x"), ring("y"), ring("z")], {"u": 1}, space="xyz"
    ),
    "heat in a graded rod": document(
        "u_t = ((1 + x**2)*u_x)_x", [value("x = 0", 0), slope("x = 1", 0)], {"u": "sin(pi*x/2)"}
    ),
    "heat in a layered rod": document(
        "u_t = (piecewise(1, x < 0.5, 0.1)*u_x)_x", [value("all", 0)], HOT_MIDDLE
    ),
    "heat that is lost to the air": document(
        "u_t = u_xx", [value("x = 0", 0), mixed("x = 1", 2, 1, 0)], {"u": "x*(1.5 - x)"}
    ),
    "heat from a jump that is meant": document(
        "u_t = u_xx", [value("all", 0)], {"u": 1}, allow=["corner-jump"]
    ),
    "heat from a bell curve": document("u_t = u_xx", [value("all", 0)], {"u": "exp(-40*(x - 0.5)**2)"}),
    "heat from a step in a ring": document(
        "u_t = u_xx", [ring()], {"u": "Heaviside(x - 0.3) - Heaviside(x - 0.7)"}
    ),
    "heat with an oblique diffusion": document(
        "u_t = u_xx + 1.5*u_xy + u_yy", [value("all", 0)], BUMP, space="xy"
    ),
    "heat in polar coordinates": document(
        "u_t = D(u, r, r) + u_r/r",
        [slope("r = 0", 0), value("r = 1", 0)],
        {"u": "J0(2.404825557695773*r)"},
        space="r",
        reference=exact(u="exp(-2.404825557695773**2*t)*J0(2.404825557695773*r)"),
    ),
    "heat into a half space": document(
        "u_t = u_xx",
        [value("x = 0", 1), value("x = 8", 0)],
        {"u": "erfc(x/2)"},
        domain=box(x=[0, 8]),
        time=[1, 2],
        reference={"kind": "exact", "value": {"u": "erfc(x/sqrt(4*t))"}},
    ),
    "option price in time to maturity": document(
        "V_t = 0.5*0.2**2*S**2*V_SS + 0.05*S*V_S - 0.05*V",
        [value("S = 0", 0, "V"), value("S = 4", "4 - exp(-0.05*t)", "V")],
        {"V": "max(S - 1, 0)"},
        fields="V",
        space="S",
        domain=box(S=[0, 4]),
    ),
    "porous medium": document("u_t = (u**2*u_x)_x", [value("all", 0)], HOT_MIDDLE),
    "logistic growth": document("u_t = 0.1*u_xx + u*(1 - u)", [slope("all", 0)], {"u": "(1 + cos(pi*x))/2"}),
    "activator and inhibitor": document(
        ["u_t = 0.01*lap(u) + u - u**3 - v", "v_t = lap(v) + u - v"],
        [slope("all", 0), slope("all", 0, "v")],
        {"u": "cos(pi*x)", "v": 0},
        fields="uv",
        space="xy",
    ),
    "nerve with a variable that stays in place": document(
        ["u_t = u_xx + u - u**3/3 - v", "v_t = 0.08*(u + 0.7 - 0.8*v)"],
        [slope("all", 0)],
        {"u": "exp(-20*x**2)", "v": 0},
        fields="uv",
    ),
    "cells that follow a trail": document(
        ["u_t = u_xx - (u*v_x)_x", "v_t = v_xx + u - v"],
        [ring()],
        {"u": "1 + 0.5*cos(2*pi*x)", "v": 1},
        fields="uv",
    ),
    "weak cross-diffusion": document(
        ["u_t = u_xx + 0.5*v_xx", "v_t = 0.5*u_xx + v_xx"],
        [ring()],
        {"u": "sin(2*pi*x)", "v": 0},
        fields="uv",
    ),
    "complex Ginzburg-Landau": document(
        [
            "u_t = u_xx - 2*v_xx + u - (u**2 + v**2)*(u - v)",
            "v_t = 2*u_xx + v_xx + v - (u**2 + v**2)*(u + v)",
        ],
        [ring()],
        {"u": "cos(2*pi*x)", "v": "sin(2*pi*x)"},
        fields="uv",
    ),
    "Schroedinger": document(
        ["u_t = -v_xx", "v_t = u_xx"],
        [value("all", 0), value("all", 0, "v")],
        {"u": "sin(pi*x)", "v": 0},
        fields="uv",
        reference=exact(u="cos(pi**2*t)*sin(pi*x)", v="-sin(pi**2*t)*sin(pi*x)"),
    ),
    "Cahn-Hilliard": document("u_t = lap(u**3 - u - 0.01*lap(u))", [ring()], {"u": "0.1*cos(2*pi*x)"}),
    "Kuramoto-Sivashinsky": document(
        "u_t + u*u_x + u_xx + D(u, x, x, x, x) = 0", [ring()], {"u": "cos(2*pi*x)"}
    ),
    "thin film": document(
        "h_t = -(h**3*D(h, x, x, x))_x", [ring()], {"h": "1 + 0.2*cos(2*pi*x)"}, fields="h"
    ),
    "clamped beam": document(
        "u_tt = -D(u, x, x, x, x)", [value("all", 0), slope("all", 0)], {"u": "x**2*(1 - x)**2", "u_t": 0}
    ),
    "simply supported beam": document(
        "D(u, x, x, x, x) = 24",
        [value("all", 0), curvature("all", 0)],
        reference=exact(u="x**4 - 2*x**3 + x"),
    ),
    "clamped plate": document("lap(lap(u)) = 1", [value("all", 0), slope("all", 0)], space="xy"),
    "wave": document("u_tt = 4*u_xx", [value("all", 0)], STILL, reference=exact(u="cos(2*pi*t)*sin(pi*x)")),
    "wave that is driven at one end": document(
        "u_tt = u_xx", [value("x = 0", "sin(t)"), slope("x = 1", 0)], {"u": 0, "u_t": 0}
    ),
    "struck string": document("u_tt = u_xx", [value("all", 0)], {"u": 0, "u_t": 1}),
    "damped wave": document("u_tt + 0.3*u_t = u_xx - u", [ring()], {"u": "sin(2*pi*x)", "u_t": 0}),
    "viscoelastic wave": document("u_tt = u_xx + 0.1*u_xxt", [value("all", 0)], STILL),
    "good Boussinesq": document(
        "u_tt = u_xx + (u**2)_xx - D(u, x, x, x, x)", [ring()], {"u": "0.1*cos(2*pi*x)", "u_t": 0}
    ),
    "sine-Gordon kink": document(
        "u_tt = u_xx - sin(u)",
        [value("x = -15", 0), value("x = 15", "2*pi")],
        {"u": "4*atan(exp(x))", "u_t": 0},
        domain=box(x=[-15, 15]),
        reference=exact(u="4*atan(exp(x))"),
    ),
    "membrane on an L-shape": document(
        "u_tt = lap(u)", [value("all", 0)], {"u": 0, "u_t": 1}, space="xy", domain=L_SHAPE
    ),
    "elastic waves": document(
        ["u_tt = lap(u) + 2*(u_x + v_y)_x", "v_tt = lap(v) + 2*(u_x + v_y)_y"],
        [ring("x"), ring("y")],
        {"u": "sin(2*pi*x)", "u_t": 0, "v": 0, "v_t": 0},
        fields="uv",
        space="xy",
    ),
    "acoustics as a system": document(
        ["p_t + v_x = 0", "v_t + p_x = 0"],
        [value("all", 0, "v")],
        {"p": "cos(pi*x)", "v": 0},
        fields="pv",
        reference=exact(p="cos(pi*t)*cos(pi*x)", v="sin(pi*t)*sin(pi*x)"),
    ),
    "sound between mixed ends": document(
        ["p_t + 3*v_x = 0", "v_t + p_x = 0"],
        [value("x = 0", 0, "v"), value("x = 1", 0, "p")],
        {"p": "cos(pi*x/2)", "v": 0},
        fields="pv",
    ),
    "Maxwell's equations in a plane": document(
        ["e_t = h_x - g_y", "g_t = -e_y", "h_t = e_x"],
        [ring("x"), ring("y")],
        {"e": "sin(2*pi*x)", "g": 0, "h": 0},
        fields="egh",
        space="xy",
    ),
    "shallow water in a basin": document(
        ["h_t + (h*u)_x = 0", "u_t + u*u_x + 9.81*h_x = 0"],
        [value("all", 0, "u")],
        {"h": "1 + 0.1*cos(pi*x)", "u": 0},
        fields="hu",
    ),
    "gas dynamics": document(
        [
            "r_t + (r*u)_x = 0",
            "(r*u)_t + (r*u**2 + p)_x = 0",
            "(p/0.4 + r*u**2/2)_t + (u*(p*1.4/0.4 + r*u**2/2))_x = 0",
        ],
        [ring()],
        {"r": "1 + 0.2*sin(2*pi*x)", "u": 0.5, "p": 1},
        fields="rup",
    ),
    "transport": document("u_t + 2*u_x = 0", [value("x = 0", 0)], {"u": "sin(pi*x)**2"}),
    "transport to the left": document("u_t = 3*u_x", [value("x = 1", 0)], {"u": "sin(pi*x)**2"}),
    "transport that speeds up": document("u_t + (1 + x)*u_x = 0", [value("x = 0", 0)], {"u": "sin(pi*x)"}),
    "transport that comes to rest at the walls": document("u_t + sin(pi*x)*u_x = 0", [], {"u": "cos(pi*x)"}),
    "transport to and fro": document("u_t + cos(4*t)*u_x = 0", [value("all", 0)], {"u": "sin(pi*x)**2"}),
    "turning flow": document(
        "u_t - (y - 0.4)*u_x + (x - 0.6)*u_y = 0",
        [value("all", 0)],
        {"u": "(sin(pi*x)*sin(pi*y))**2"},
        space="xy",
    ),
    "steady transport": document("u_x + 2*u_y = 1", [value("x = 0", "y"), value("y = 0", "x/3")], space="xy"),
    "steady decay along a tube": document(
        "u_x + 3*u = 0", [value("x = 0", 1)], reference=exact(u="exp(-3*x)")
    ),
    "rarefaction": document("u_t + u*u_x = 0", [value("x = 0", "0")], {"u": "x"}),
    "shock between two states": document(
        "u_t + (u**2/2)_x = 0", [value("x = 0", 1), value("x = 1", -1)], {"u": "1 - 2*x"}
    ),
    "viscous front": document(
        "u_t + u*u_x = 0.1*u_xx",
        [value("x = -5", "1 - tanh((-5 - t)/0.2)"), value("x = 5", "1 - tanh((5 - t)/0.2)")],
        {"u": "1 - tanh(x/0.2)"},
        domain=box(x=[-5, 5]),
        reference=exact(u="1 - tanh((x - t)/0.2)"),
    ),
    "soliton between walls": document(
        "u_t + 6*u*u_x + u_xxx = 0",
        [value("all", 0), slope("x = 12", 0)],
        {"u": "0.5/cosh((x + 4)/2)**2"},
        domain=box(x=[-20, 12]),
    ),
    "soliton to the left": document(
        "u_t = u_xxx", [value("all", 0), slope("x = 0", 0)], {"u": "(x*(1 - x))**2"}
    ),
    "long waves": document("u_t + u_x + u*u_x - u_xxt = 0", [ring()], {"u": "sin(2*pi*x)"}),
    "incompressible flow": document(
        [
            "u_t + u*u_x + v*u_y = -p_x + 0.01*lap(u)",
            "v_t + u*v_x + v*v_y = -p_y + 0.01*lap(v)",
            "u_x + v_y = 0",
        ],
        [ring("x"), ring("y")],
        {"u": "sin(x)*cos(y)", "v": "-cos(x)*sin(y)"},
        fields="uvp",
        space="xy",
        domain=box(x=[0, "2*pi"], y=[0, "2*pi"]),
        mean={"p": 0},
        reference=exact(
            u="sin(x)*cos(y)*exp(-0.02*t)",
            v="-cos(x)*sin(y)*exp(-0.02*t)",
            p="(cos(2*x) + cos(2*y))/4*exp(-0.04*t)",
        ),
    ),
    "creeping flow": document(
        ["-lap(u) + p_x = 1", "-lap(v) + p_y = 0", "u_x + v_y = 0"],
        [value("all", 0), value("all", 0, "v")],
        fields="uvp",
        space="xy",
        mean={"p": 0},
    ),
    "Laplace": document(
        "lap(u) = 0",
        [value("x = 0", 0), value("x = 1", 0), value("y = 0", 0), value("y = 1", "sin(pi*x)")],
        space="xy",
        reference=exact(u="sin(pi*x)*sinh(pi*y)/sinh(pi)"),
    ),
    "Laplace with a hot edge that is meant": document(
        "lap(u) = 0",
        [value("x = 0", 0), value("x = 1", 0), value("y = 0", 0), value("y = 1", 1)],
        space="xy",
        allow=["corner-jump"],
    ),
    "Laplace in a disk": document(
        "lap(u) = 0", [value("outer", "x*y")], space="xy", domain=DISK, reference=exact(u="x*y")
    ),
    "Laplace in a ring": document(
        "lap(u) = 0",
        [value("inner", 0), slope("outer", "1/2")],
        space="xy",
        domain=RING,
        reference=exact(u="log(sqrt(x**2 + y**2))"),
    ),
    "Poisson with balanced fluxes": document(
        "-lap(u) = -4",
        [slope("outer", 2)],
        space="xy",
        domain=DISK,
        mean={"u": 0},
        reference=exact(u="x**2 + y**2 - 0.5"),
    ),
    "Poisson on an L-shape with balanced fluxes": document(
        "lap(u) = 1", [slope("all", 0.375)], space="xy", domain=L_SHAPE, mean={"u": 0}
    ),
    "Poisson in an insulated plate of varying conductivity": document(
        "-div((1 + x)*grad(u)) = cos(pi*x)*cos(pi*y)", [slope("all", 0)], space="xy", mean={"u": 3}
    ),
    "Poisson on a torus": document("lap(u) = sin(2*pi*x)", [ring("x"), ring("y")], space="xy", mean={"u": 0}),
    "Poisson that loses heat": document("u_xx = 1", [slope("x = 0", 0), mixed("x = 1", 1, 1, 0)]),
    "Helmholtz between two eigenvalues": document("lap(u) + 16*pi**2*u = 1", [value("all", 0)], space="xy"),
    "Helmholtz that decays": document("lap(u) - 5*pi**2*u = 1", [value("all", 0)], space="xy"),
    "Helmholtz with absorbing ends": document(
        "u_xx + 4*pi**2*u = 1", [value("x = 0", 0), mixed("x = 1", 1, 1, 0)]
    ),
    "convection and diffusion": document("u_x + u_y = 0.1*lap(u)", [value("all", "x*y")], space="xy"),
    "minimal surface": document(
        "(1 + u_y**2)*u_xx - 2*u_x*u_y*u_xy + (1 + u_x**2)*u_yy = 0",
        [value("all", "x**2 - y**2")],
        space="xy",
    ),
    "Bratu": document("u_xx + exp(u) = 0", [value("all", 0)]),
    "first-order form of Poisson": document(["q + u_x = 0", "q_x = 1"], [value("all", 0)], fields="uq"),
    "eigenvalues of a drum": document(
        "-lap(u) = mu*u", [value("all", 0)], space="xy", domain=DISK, eigenvalue={"name": "mu", "count": 3}
    ),
}
