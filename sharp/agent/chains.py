"""The tool chain that a problem takes, read off its specification: what a perfect team would do.

It serves as the scored reference of the benchmark, which is why it is generated and not written by hand, and as the
knowledge of the embedded rule-based model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sharp.agent.plans import OutputReference, PlanStep, ToolPlan
from sharp.problems import BoxDomain, Problem, open_parts, parts_at, split_where, to_document

Document = Mapping[str, Any]
_EQUATIONS = (
    "coordinates",
    "fields",
    "parameters",
    "coefficients",
    "units",
    "definitions",
    "equations",
    "eigenvalue",
)


@dataclass(frozen=True)
class ToolChain:
    """A plan with the literal parameters of every step; `optional` steps may be missing without fault."""

    plan: ToolPlan
    parameters: Mapping[str, Mapping[str, Any]]
    optional: frozenset[str] = frozenset()


@dataclass
class _Chain:
    steps: list[PlanStep]
    parameters: dict[str, Mapping[str, Any]]

    def add(self, tool: str, parameters: Mapping[str, Any], **inputs: Sequence[str]) -> str:
        step_id = f"s{len(self.steps) + 1}"
        wiring = {
            port: tuple(OutputReference(*source.split(".")) for source in sources)
            for port, sources in inputs.items()
        }
        self.steps.append(PlanStep(step_id, tool, {port: given for port, given in wiring.items() if given}))
        self.parameters[step_id] = parameters
        return step_id


def accepted_tool_chains(problem: Problem) -> tuple[ToolChain, ...]:
    """Return the chains that solve a problem, the one by its specification first.

    They differ in how conditions are told that hold on the whole boundary: at once, or part by part. To set up and use
    an exact solution is optional, as few statements give one.
    """
    document = to_document(problem)
    alike: dict[str, list[Document]] = {}
    for condition in document.get("boundary") or ():
        rest = {name: value for name, value in condition.items() if name != "where"}
        alike.setdefault(json.dumps(rest, sort_keys=True), []).append(condition)
    ways = product(*(_ways_to_tell(problem, conditions) for conditions in alike.values()))
    return tuple(
        chain_of_document({**document, "boundary": [condition for told in way for condition in told]})
        for way in ways
    )


def _ways_to_tell(problem: Problem, conditions: list[Document]) -> list[list[Document]]:
    """Return how conditions that differ in their place alone can be told."""
    places = [str(condition.get("where", "")) for condition in conditions]
    if not all(places) or any(split_where(place)[1] for place in places):
        return [conditions]
    if {part for place in places for part in parts_at(problem, place)} != set(open_parts(problem)):
        return [conditions]
    if places != ["all"]:
        return [conditions, [{**conditions[0], "where": "all"}]]
    apart: list[Document] = [
        {**conditions[0], "where": _place(problem, part)} for part in open_parts(problem)
    ]
    return [conditions, apart]


def _place(problem: Problem, part: str) -> str:
    """Return a part of the boundary as a specification names it, to all digits."""
    if isinstance(problem.domain, BoxDomain):
        return f"{part[:-1]} = {problem.bounds[part[:-1]]['-+'.index(part[-1])]!r}"
    return part


def chain_of_document(document: Document, effort: Mapping[str, Any] | None = None) -> ToolChain:
    """Return the chain of a specification, whole or not: set up, check, discretise, solve, verify, show.

    What the document lacks is left out; a missing domain leaves the step without parameters. With an `effort`, the
    parameters of `synthesize_solver`, a solver program is written and solves the problem.
    """
    chain = _Chain([], {})
    whole = _set_up(chain, document)
    sound = f"{chain.add('check_problem', {}, problem=[f'{whole}.problem'])}.validated_problem"
    if effort is None:
        method = chain.add("choose_method", {}, problem=[sound])
        grid = chain.add("discretise", {}, problem=[sound], method=[f"{method}.method"])
        solved = chain.add(_solving_tool(document), {}, discretisation=[f"{grid}.discretisation"])
        using = {"problem": [sound], "solution": [f"{solved}.solution"]}
        for tool in ("check_residual", "check_conditions"):
            chain.add(tool, {}, **using)
    else:
        program = chain.add("synthesize_solver", effort, problem=[sound])
        solved = chain.add("run_solver", {}, problem=[sound], solver=[f"{program}.solver"])
        using = {"problem": [sound], "solution": [f"{solved}.solution"]}
    optional = [chain.add("cross_check", {}, **using)]
    if _exact(document):
        optional.append(chain.add("compare_with_reference", {}, **using))
        optional += [step.id for step in chain.steps if step.tool == "define_reference_solution"]
    chain.add("visualise", {}, **using)
    optional.append(chain.add("export_solution", {}, **using))
    return ToolChain(ToolPlan(tuple(chain.steps)), chain.parameters, frozenset(optional))


def _solving_tool(document: Document) -> str:
    if document.get("eigenvalue"):
        return "solve_eigenvalues"
    return "solve_in_time" if document.get("coordinates", {}).get("time") else "solve_steady"


def _set_up(chain: _Chain, document: Document) -> str:
    equations = chain.add("define_equations", _present(document, _EQUATIONS))
    domain = chain.add(
        "define_domain", _present(document, ("domain", "time")) if "domain" in document else {}
    )
    starts = {
        name: given["expression"] if isinstance(given, Mapping) else given
        for name, given in (document.get("initial") or {}).items()
    }
    inputs = {
        "equations": [f"{equations}.equations"],
        "domain": [f"{domain}.domain"],
        "initial": [
            f"{chain.add('define_initial_condition', {'field': name, 'value': value})}.initial"
            for name, value in starts.items()
        ],
        "boundary": [
            f"{chain.add('define_boundary_condition', condition)}.boundary"
            for condition in document.get("boundary") or ()
        ],
        "mean": [
            f"{chain.add('define_mean', {'field': name, 'value': value})}.mean"
            for name, value in (document.get("mean") or {}).items()
        ],
    }
    if _exact(document):
        known = chain.add(
            "define_reference_solution", _present(document["reference"], ("value", "eigenvalues"))
        )
        inputs["reference"] = [f"{known}.reference"]
    if document.get("outputs"):
        inputs["outputs"] = [f"{chain.add('define_outputs', document['outputs'])}.outputs"]
    inputs["quantity"] = [
        f"{chain.add('define_quantity', {'name': name, **asked})}.quantity"
        for name, asked in (document.get("quantities") or {}).items()
    ]
    return chain.add("assemble_problem", _present(document, ("title", "accuracy", "allow")), **inputs)


def _exact(document: Document) -> bool:
    return (document.get("reference") or {}).get("kind") == "exact"


def _present(document: Document, keys: Iterable[str]) -> dict[str, Any]:
    return {key: document[key] for key in keys if document.get(key) not in (None, [], ())}
