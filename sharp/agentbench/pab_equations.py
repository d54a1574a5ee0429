"""The families of pde-agent-bench as equations: what stands on the left, and the names in it.

The right side is the source term. Where a case has an exact solution instead, the same left side gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sharp.agentbench.pab_expressions import read, write
from sharp.agentbench.pab_form import Equation, Unfit
from sharp.problems.wording import clip

VECTORS = frozenset({"linear_elasticity", "navier_stokes", "stokes"})


@dataclass(frozen=True)
class Form:
    """An equation `left = source` for the field u, with the values of its parameters and its coefficients as text.

    `operator` is the left side in terms of u alone. `further` has equations of further fields, as in {w: -lap(u)}.
    """

    left: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    coefficients: Mapping[str, str] = field(default_factory=dict)
    operator: str = ""
    further: Mapping[str, str] = field(default_factory=dict)


def form(pde: Equation, space: Sequence[str]) -> Form:
    """Return the form of an equation; raises `Unfit` for families that cannot be said."""
    if pde.type in VECTORS:
        raise Unfit(f"vector problem ({pde.type})")
    if pde.type not in _FORMS:
        raise Unfit("an equation of another family", clip(pde.type))
    return _FORMS[pde.type](pde, space)


def interval(pde: Equation) -> tuple[float, float] | None:
    """Return the first and last time of an equation, None where it is steady; raises `Unfit` where there is none."""
    if pde.type == "burgers" and pde.time is None:
        return 0.0, pde.t_final
    if pde.type in ("heat", "wave") and pde.time is None:
        raise Unfit("not of the form of a case", "pde.time: expected the time interval, found nothing")
    return (pde.time.t0, pde.time.t_end) if pde.time else None


def _poisson(pde: Equation, space: Sequence[str]) -> Form:
    return _diffusion(pde, space, "-")


def _heat(pde: Equation, space: Sequence[str]) -> Form:
    return _diffusion(pde, space, "u_t - ")


def _diffusion(pde: Equation, space: Sequence[str], before: str) -> Form:
    """Return `before` and the diffusion term, whose coefficient is 1 where the case gives none."""
    kappa = pde.coefficients.get("kappa")
    if kappa is None:
        return Form(f"{before}lap(u)")
    if kappa.type == "constant" and kappa.value is not None:
        return Form(f"{before}kappa*lap(u)", {"kappa": kappa.value})
    if kappa.type == "expr" and kappa.expr is not None:
        written = write(read(kappa.expr, space, "kappa"))
        return Form(f"{before}div(kappa*grad(u))", coefficients={"kappa": written})
    raise Unfit("a coefficient of another kind", clip(kappa.type))


def _convection(pde: Equation, space: Sequence[str]) -> Form:
    epsilon, beta = _number(pde, "epsilon"), pde.pde_params.get("beta")
    if not isinstance(beta, list) or len(beta) != len(space) or not all(map(_is_number, beta)):
        raise Unfit("not of the form of a case", f"pde_params.beta: expected {len(space)} numbers")
    if epsilon <= 0:
        raise Unfit(
            "pure advection", "values on the whole boundary are more than an equation of first order takes"
        )
    speeds = {f"b{axis}": float(value) for axis, value in zip(space, beta, strict=True) if value}
    terms = "".join(f" + {name}*u_{name[1:]}" for name in speeds)
    start = "u_t - " if pde.time else "-"
    return Form(f"{start}epsilon*lap(u){terms}", {"epsilon": epsilon, **speeds})


def _helmholtz(pde: Equation, space: Sequence[str]) -> Form:
    del space
    key = "k" if "k" in pde.pde_params else "wave_number"
    return Form("-lap(u) - k**2*u", {"k": _number(pde, key)})


# Types of the reaction term R(u): its text, and its parameters by the names that they have in the text.
_REACTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "linear": ("alpha*u", {"alpha": "alpha"}),
    "cubic": ("alpha*u + beta*u**3", {"alpha": "alpha", "beta": "beta"}),
    "allen_cahn": ("lam*(u**3 - u)", {"lam": "lambda"}),
    "logistic": ("rho*u*(1 - u)", {"rho": "rho"}),
}


def _reaction(pde: Equation, space: Sequence[str]) -> Form:
    del space
    given = pde.pde_params.get("reaction")
    kind = str(given.get("type")) if isinstance(given, Mapping) else "missing"
    if not isinstance(given, Mapping) or kind not in _REACTIONS:
        raise Unfit("a reaction of another kind", clip(kind))
    text, names = _REACTIONS[kind]
    if not all(_is_number(given.get(key)) for key in names.values()):
        raise Unfit("not of the form of a case", f"reaction: expected numbers {', '.join(names.values())}")
    values = {name: float(given[key]) for name, key in names.items()}
    start = "u_t - " if pde.time else "-"
    return Form(f"{start}epsilon*lap(u) + {text}", {"epsilon": _number(pde, "epsilon"), **values})


def _wave(pde: Equation, space: Sequence[str]) -> Form:
    del space
    return Form("u_tt - c**2*lap(u)", {"c": _number(pde, "c")})


def _burgers(pde: Equation, space: Sequence[str]) -> Form:
    transport = "".join(f" + u*u_{axis}" for axis in space)
    return Form(f"u_t{transport} - nu*lap(u)", {"nu": _number(pde, "nu")})


def _biharmonic(pde: Equation, space: Sequence[str]) -> Form:
    """Two equations of second order, as the benchmark poses them: u and w = -lap(u) are given on the boundary."""
    del pde, space
    return Form("-lap(w)", operator="lap(lap(u))", further={"w": "-lap(u)"})


_FORMS: Mapping[str, Callable[[Equation, Sequence[str]], Form]] = {
    "poisson": _poisson,
    "heat": _heat,
    "convection_diffusion": _convection,
    "helmholtz": _helmholtz,
    "reaction_diffusion": _reaction,
    "wave": _wave,
    "burgers": _burgers,
    "biharmonic": _biharmonic,
}


def _number(pde: Equation, name: str) -> float:
    value: Any = pde.pde_params.get(name)
    if not _is_number(value):
        raise Unfit("not of the form of a case", f"pde_params.{name}: expected a number")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
