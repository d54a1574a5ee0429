"""The tool chain that a problem takes, read off its specification: what a perfect team would do.

It serves as the scored reference of the benchmark, which is why it is generated and not written by hand, and as the
knowledge of the embedded playbook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sharp.agent.plans import Plan, Reference, Step
from sharp.problems.problem import Problem
from sharp.problems.spec import Section, Specification


@dataclass(frozen=True)
class Chain:
    """A plan with the literal parameters of every step; `optional` steps may be missing without fault."""

    plan: Plan
    parameters: Mapping[str, Mapping[str, Any]]
    optional: frozenset[str] = frozenset()


@dataclass
class _Chain:
    steps: list[Step]
    parameters: dict[str, Mapping[str, Any]]

    def add(self, tool: str, parameters: Mapping[str, Any], **inputs: Sequence[str]) -> str:
        """Add a step and return its id."""
        step_id = f"s{len(self.steps) + 1}"
        wiring = {
            port: tuple(Reference(*source.split(".")) for source in sources)
            for port, sources in inputs.items()
        }
        self.steps.append(Step(step_id, tool, {port: given for port, given in wiring.items() if given}))
        self.parameters[step_id] = parameters
        return step_id


def chain_of(problem: Problem) -> Chain:
    """Return the chain of a problem: set up, check, discretise, solve, verify, show."""
    chain = _Chain([], {})
    whole = _set_up(chain, problem.specification)
    sound = f"{chain.add('check_problem', {}, problem=[f'{whole}.problem'])}.sound"
    method = chain.add("choose_method", {}, problem=[sound])
    grid = chain.add("discretise", {}, problem=[sound], method=[f"{method}.method"])
    solved = chain.add(solving_tool(problem), {}, discretisation=[f"{grid}.discretisation"])
    using = {"problem": [sound], "solution": [f"{solved}.solution"]}
    for tool in ("check_residual", "check_conditions"):
        chain.add(tool, {}, **using)
    optional = [chain.add("cross_check", {}, **using)]
    if problem.specification.reference.kind == "exact":
        chain.add("compare_with_reference", {}, **using)
    chain.add("visualise", {}, **using)
    optional.append(chain.add("export_solution", {}, **using))
    return Chain(Plan(tuple(chain.steps)), chain.parameters, frozenset(optional))


def solving_tool(problem: Problem) -> str:
    """Return the tool that solves problems of this kind."""
    if problem.specification.eigenvalue:
        return "solve_eigenvalues"
    return "solve_steady" if problem.time is None else "solve_in_time"


def _set_up(chain: _Chain, spec: Specification) -> str:
    equations = chain.add("define_equations", _equations(spec))
    region = {"domain": _plain(spec.domain), **({"time": list(spec.time)} if spec.time else {})}
    domain = chain.add("define_domain", region)
    inputs = {
        "equations": [f"{equations}.equations"],
        "domain": [f"{domain}.domain"],
        "initial": [f"{chain.add('define_initial_condition', given)}.initial" for given in _starts(spec)],
        "boundary": [
            f"{chain.add('define_boundary_condition', _plain(condition))}.boundary"
            for condition in spec.boundary
        ],
        "mean": [
            f"{chain.add('define_mean', {'field': name, 'value': value})}.mean"
            for name, value in spec.mean.items()
        ],
    }
    if spec.reference.kind == "exact":
        known = chain.add("define_reference_solution", _known(spec))
        inputs["reference"] = [f"{known}.reference"]
    whole = spec.model_dump(mode="json", include={"title", "accuracy"}, exclude_defaults=True)
    return chain.add("assemble_problem", whole, **inputs)


def _equations(spec: Specification) -> dict[str, Any]:
    keys = {"coordinates", "fields", "parameters", "coefficients", "units", "equations", "eigenvalue"}
    return spec.model_dump(mode="json", include=keys, exclude_defaults=True)


def _known(spec: Specification) -> dict[str, Any]:
    return spec.reference.model_dump(mode="json", include={"value", "eigenvalues"}, exclude_defaults=True)


def _starts(spec: Specification) -> Iterator[dict[str, Any]]:
    for name, given in spec.initial.items():
        yield {"field": name, "value": given.expression}


def _plain(section: Section) -> dict[str, Any]:
    return section.model_dump(mode="json", exclude_defaults=True)
