"""A case of pde-agent-bench as the document of a specification."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from sharp.agentbench import pab_equations, pab_shapes
from sharp.agentbench.pab_boundary import conditions
from sharp.agentbench.pab_equations import Form
from sharp.agentbench.pab_expressions import derived, read, write
from sharp.agentbench.pab_form import BenchCase, Equation, Samples, Unfit
from sharp.problems.grammar import Scope, parse_tree

TAG = "pde-agent-bench"
TIME = "t"
FIELD = "u"


@dataclass(frozen=True)
class _Setting:
    """What an equation is about: its space coordinates, the time interval of a transient one, and its form."""

    space: tuple[str, ...]
    times: tuple[float, float] | None
    form: Form

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (*self.space, TIME) if self.times else self.space

    @property
    def fields(self) -> tuple[str, ...]:
        return (FIELD, *self.form.further)

    def applied(self, operator: str, solution: Any) -> Any:
        """Return what an operator on u, such as `-kappa*lap(u)`, makes of a solution."""
        names = [*self.form.parameters, *self.form.coefficients]
        tree = parse_tree(operator, Scope.of(names, [FIELD], self.coordinates))
        known = {
            name: sympy.Function(name)(*map(sympy.Symbol, self.space)) for name in self.form.coefficients
        }
        return derived(tree, {FIELD: solution, **known}, self.space)


def document(case: BenchCase) -> dict[str, Any]:
    """Return a case as the document of a specification; raises `Unfit` where it cannot be said as one."""
    oracle = case.oracle_config
    domain = pab_shapes.domain(oracle.domain)
    space = pab_shapes.space(domain)
    pde = oracle.pde
    setting = _Setting(space, pab_equations.interval(pde), pab_equations.form(pde, space))
    exact = _exact(pde, setting)
    return {
        "pde_spec": 1,
        "id": re.sub("[^a-z0-9]+", "-", case.id.lower()).strip("-"),
        "title": pde.description or f"{pde.type} on {oracle.domain.type}",
        "coordinates": {"space": list(space), **({"time": TIME} if setting.times else {})},
        "fields": list(setting.fields),
        "coefficients": dict(setting.form.coefficients),
        "parameters": dict(setting.form.parameters),
        "equations": _equations(pde, setting, exact),
        "domain": domain,
        **({"time": list(setting.times)} if setting.times else {}),
        "initial": _initial(pde, setting, exact),
        "boundary": conditions(oracle.bc, domain, setting.fields, setting.coordinates, exact),
        "outputs": _outputs(oracle.output.grid, setting),
        **_reference(setting, exact),
        "limits": {"wall_s": case.evaluation_config.timeout_sec},
        "tags": [TAG, case.id, pde.type],
    }


def _exact(pde: Equation, setting: _Setting) -> dict[str, Any]:
    """Return the exact solution of each field, nothing where the case has none."""
    if not pde.manufactured_solution:
        return {}
    solution = read(pde.manufactured_solution.get("u"), setting.coordinates, "the manufactured solution")
    further = {name: setting.applied(text, solution) for name, text in setting.form.further.items()}
    return {FIELD: solution, **further}


def _equations(pde: Equation, setting: _Setting, exact: Mapping[str, Any]) -> list[str]:
    form = setting.form
    if exact:
        source = setting.applied(form.operator or form.left, exact[FIELD])
    else:
        source = read(pde.source_term or 0, setting.coordinates, "the source term")
    further = [f"{text} = {name}" for name, text in form.further.items()]
    return [*further, f"{form.left} = {write(source)}"]


def _initial(pde: Equation, setting: _Setting, exact: Mapping[str, Any]) -> dict[str, str]:
    """Return the initial state: that of the exact solution, or as given, which is 0 where nothing is."""
    if not setting.times:
        return {}
    rates: Sequence[str] = (FIELD, f"{FIELD}_{TIME}") if pde.type == "wave" else (FIELD,)
    if exact:
        t = sympy.Symbol(TIME)
        found = [exact[FIELD].diff(t, order).subs(t, setting.times[0]) for order in range(len(rates))]
    else:
        given = (pde.initial_condition, pde.initial_velocity)
        found = [
            read(value or 0, setting.space, f"the initial {name}")
            for name, value in zip(rates, given, strict=False)
        ]
    return {name: write(value) for name, value in zip(rates, found, strict=True)}


def _outputs(grid: Samples, setting: _Setting) -> dict[str, Any]:
    """Return the grid of a case; of a transient one the last time is compared, and the first is always there."""
    counts = dict(zip(setting.space, (grid.nx, grid.ny, grid.nz), strict=False))
    if None in counts.values():
        raise Unfit("not of the form of a case", "output.grid.nz: expected a number, found nothing")
    return {"grid": "nodes", "points": counts, **({"times": 2} if setting.times else {})}


def _reference(setting: _Setting, exact: Mapping[str, Any]) -> dict[str, Any]:
    if exact:
        return {
            "reference": {"kind": "exact", "value": {name: write(value) for name, value in exact.items()}}
        }
    # Initial and boundary values are meant as they are given, whether they agree where they meet or not.
    return {"accept": ["corner-jump"]} if setting.times else {}
