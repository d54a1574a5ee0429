"""Families of problems: what their reference solvers and residuals take for granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharp.problems.analysis import equivalent
from sharp.problems.checks import ValidationContext
from sharp.problems.grammar import Scope, parse_equation_tree
from sharp.problems.spec import Boundary


@dataclass(frozen=True)
class FamilySignature:
    """Names and equations that a problem of the family has, among others, and its boundary conditions."""

    fields: tuple[str, ...]
    parameters: tuple[str, ...]
    equations: tuple[str, ...]
    boundary: tuple[Boundary, ...] = (Boundary(type="periodic", axis="x"),)
    coefficients: tuple[str, ...] = ()


FAMILIES: Mapping[str, FamilySignature] = {
    "advection": FamilySignature(("u",), ("beta",), ("u_t + beta*u_x = 0",)),
    "burgers": FamilySignature(("u",), ("nu",), ("u_t + (u**2/2)_x = nu*u_xx",)),
    "reaction-diffusion": FamilySignature(("u",), ("nu", "rho"), ("u_t - nu*u_xx = rho*u*(1 - u)",)),
    # The viscosity may depend on the density: it is read off the momentum equation.
    "navier-stokes-1d": FamilySignature(
        ("Vx", "density", "pressure"), ("eta", "zeta", "Gamma"), ("density_t + (density*Vx)_x = 0",)
    ),
    "darcy-2d": FamilySignature(
        ("u",),
        ("beta",),
        ("-div(a*grad(u)) = beta",),
        (Boundary(type="dirichlet", where="all", field="u", value="0"),),
        ("a",),
    ),
}


def check_family(checked: ValidationContext) -> None:
    """A problem that names a family is one of it: its reference and residual would else be another's."""
    family = FAMILIES.get(checked.spec.family)
    if family is None:
        return
    if _check_names(checked, family):
        _check_equations(checked, family)
    if checked.spec.boundary != family.boundary:
        wanted = ", ".join(_show(condition) for condition in family.boundary)
        _wrong(checked, "boundary", f"conditions {wanted}")


def _check_names(checked: ValidationContext, family: FamilySignature) -> bool:
    before = len(checked.faults)
    for section in ("fields", "coefficients", "parameters"):
        wanted, found = getattr(family, section), tuple(getattr(checked.spec, section))
        if not set(wanted) <= set(found):
            _wrong(checked, section, f"{section} {', '.join(wanted)}; found {', '.join(found) or 'none'}")
    return len(checked.faults) == before


def _check_equations(checked: ValidationContext, family: FamilySignature) -> None:
    spec = checked.spec
    scope = Scope.of(spec.parameters, (*spec.fields, *spec.coefficients), ("x", "y", "t"))
    for text in family.equations:
        wanted = parse_equation_tree(text, scope)
        among = (
            equivalent(wanted, e, scope.fields, checked.space, checked.time_name) for e in checked.equations
        )
        if not any(among):
            _wrong(checked, "equations", f"equation '{text}'")


def _show(condition: Boundary) -> str:
    keys = condition.model_dump(exclude_none=True)
    return "{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"


def _wrong(checked: ValidationContext, section: str, wanted: str) -> None:
    checked.add_issue(
        (section,), f"the family {checked.spec.family} has the {wanted}; otherwise use family: other"
    )
