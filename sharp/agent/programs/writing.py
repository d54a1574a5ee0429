"""The playbook as a programmer: a program for a problem on an interval or a rectangle, by spectral collocation.

Fields are values at Chebyshev nodes, or at evenly spaced ones along periodic axes. Values that conditions hold at the
ends of an axis follow from the others; the rest obey the equations at the nodes, in time by SciPy's integrators (method
of lines), or by Newton's method if the problem is steady.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator

from sharp.agent.programs import parts
from sharp.agent.programs.slips import mistaken_program
from sharp.problems.domains import BoxDomain
from sharp.problems.expressions import Derivative, Equation, Name, walk
from sharp.problems.formulation import End, Formulation, mentions
from sharp.problems.printing import Unprintable, isolated
from sharp.problems.problem import Problem

# Nodes along an axis by the number of dimensions: Chebyshev polynomials of this degree, Fourier modes of an odd number.
_DEGREE = {1: 64, 2: 20}
_DEGREE_EXPLICIT = {1: 48, 2: 20}
_ACCURACY = 1e-9
_GRIDS = {"chebyshev": parts.CHEBYSHEV, "fourier": parts.FOURIER}
_JACOBIAN = "\n        jac=lambda {time}, state: slopes(lambda other: rates({time}, other), state),"


def playbook_answer(problem: Problem, slip: random.Random | None = None) -> str:
    """Return the playbook's answer when it is asked for a program, with a slip if it is given what chooses one.

    For a problem that takes more than is known here it holds no program.
    """
    code = playbook_program(problem)
    if code is None:
        return "I know no short program for this problem."
    return program_answer(problem, mistaken_program(code, slip) if slip else code)


def program_answer(problem: Problem, code: str) -> str:
    """Return a program as a model's answer, with what `run_program` has to know of the problem."""
    stated = json.dumps(
        {
            "bounds": [list(ends) for ends in problem.bounds.values()],
            "time": list(problem.time) if problem.time else None,
            "fields": list(problem.fields),
        }
    )
    return f"Spectral collocation resolves it.\n\n```python\n{code}```\n\n```json\n{stated}\n```\n"


def playbook_program(problem: Problem) -> str | None:
    """Return a program for a problem, or None where one takes more than is known here.

    It treats intervals and rectangles, equations with one time derivative of the highest order each, which is a term of
    its own, at most two derivatives along an axis, and at most one condition of a field at each end of an axis, with
    constant factors.
    """
    spec = problem.specification
    if not isinstance(problem.domain, BoxDomain) or len(problem.space) > 2 or spec.mean or spec.eigenvalue:
        return None
    try:
        return _text(Formulation(problem, parts.TAKEN))
    except Unprintable:
        return None


def _text(known: Formulation) -> str:
    body = [*_grid(known), *_conditions(known), *(_evolution(known) if known.time else _balance(known))]
    text = "\n\n\n".join(part.strip("\n") for part in body) + "\n"
    head = [
        "import numpy as np",
        *(["from scipy import special"] if "special." in text else []),
        *(["from scipy.integrate import solve_ivp"] if known.time else []),
        "",
        'np.seterr(all="ignore")',
        *_constants(known, text),
    ]
    return "\n".join(head) + f"\n\n\n{text}"


def _constants(known: Formulation, text: str) -> Iterator[str]:
    for name, value in known.problem.parameters.items():
        if mentions(text, known.names[name]):
            yield f"{known.names[name]} = {value!r}"


def _grid(known: Formulation) -> Iterator[str]:
    kinds = ["fourier" if known.periodic(axis) else "chebyshev" for axis in known.problem.space]
    yield from (_GRIDS[kind] for kind in sorted(set(kinds)))
    yield from (parts.INTERPOLATION[kind] for kind in sorted(set(kinds)))
    degree = (_DEGREE if known.stiff else _DEGREE_EXPLICIT)[len(kinds)]
    axes = ", ".join(
        f"{kind}({low!r}, {high!r}, {degree + (kind == 'fourier')})"
        for kind, (low, high) in zip(kinds, known.problem.bounds.values(), strict=True)
    )
    yield _lines(
        f"axes = [{axes}]",
        "matrices = [matrix for _, matrix, _ in axes]",
        f'{_targets(known.space)} = np.meshgrid(*[nodes for nodes, _, _ in axes], indexing="ij")',
        f"shape = {known.space[0]}.shape",
        "zeros = np.zeros(shape)",
    )
    yield parts.DIFFERENTIATION


def _conditions(known: Formulation) -> Iterator[str]:
    if known.held:
        yield parts.CLOSURE
        yield _lines(
            *(
                f"{held.name} = holder({held.axis}, [{', '.join(map(_end, held.ends))}])"
                for held in known.held
            )
        )
    yield _lines(*_masks(known))
    yield _lines(
        f"def closed({f'{known.time}, ' if known.time else ''}state):",
        '    """Return the fields with the values that conditions hold."""',
        f"    {_targets(known.components)} = state.reshape(-1, *shape)",
        *(f"    {line}" for line in _closing(known)),
        f"    return {_targets(known.components)}",
    )


def _end(end: End) -> str:
    return f"({end.index}, {end.a!r}, {end.b!r})"


def _masks(known: Formulation) -> Iterator[str]:
    """Yield what says at which nodes the equations hold."""
    for name in known.fields:
        yield f"free_{name} = np.ones(shape, dtype=bool)"
        for held in known.held:
            if held.field == name:
                yield from (f"free_{name}[{':, ' * held.axis}{end.index}] = False" for end in held.ends)


def _closing(known: Formulation) -> Iterator[str]:
    for held in known.held:
        values = "".join(f", {end.value}" for end in held.ends)
        yield f"{held.field} = {held.name}({held.field}{values})"
    if known.viscous:
        yield from _closing_velocities(known)


def _closing_velocities(known: Formulation) -> Iterator[str]:
    """Yield what holds velocities, by the time derivative of conditions that do not depend on time."""
    velocities = {known.names[name]: velocity for name, velocity in known.velocities.items()}
    for held in known.held:
        velocity = velocities.get(held.field)
        if velocity and any(mentions(end.value, str(known.time)) for end in held.ends):
            raise Unprintable("a velocity that follows from a condition")
        if velocity:
            yield f"{velocity} = {held.name}({velocity}{', 0.0' * len(held.ends)})"


def _evolution(known: Formulation) -> Iterator[str]:
    assert known.problem.time is not None, "the problem depends on time"
    begin, end = known.problem.time
    yield _lines(
        f"def rates({known.time}, state):",
        f"    {_targets(known.components)} = closed({known.time}, state)",
        *_stacked("    return ", _rates(known), ".ravel()"),
    )
    if known.stiff:
        yield parts.DIFFERENCES
    yield _lines(f"{known.time} = {begin!r}", *_stacked("start = ", _starts(known)))
    yield parts.IN_TIME.format(
        begin=begin,
        end=end,
        method="Radau" if known.stiff else "DOP853",
        rtol=_ACCURACY,
        atol=f"{_ACCURACY / 10:g} * (np.abs(start).max() or 1.0)",
        jacobian=_JACOBIAN.format(time=known.time) if known.stiff else "",
        fields=len(known.fields),
        **_sampling(known),
    )


def _rates(known: Formulation) -> Iterator[str]:
    """Yield the rates of all components, none at nodes whose values are held."""
    highest = {name: f"free_{known.names[name]} * ({_rate(known, name)})" for name in known.problem.fields}
    for name, rate in highest.items():
        velocity = known.velocities.get(name)
        yield f"free_{known.names[name]} * {velocity}" if velocity else rate
    yield from (highest[name] for name in known.velocities)


def _rate(known: Formulation, field: str) -> str:
    highest = Derivative(Name(field), (str(known.problem.time_name),) * known.orders[field])
    for equation in known.problem.equations:
        if any(highest in walk(side) for side in (equation.left, equation.right)):
            return known.printer.code(isolated(equation.left, equation.right, highest))
    raise Unprintable(f"no equation has the rate of '{field}' itself")


def _starts(known: Formulation) -> Iterator[str]:
    initial = known.problem.specification.initial
    velocities = (f"{name}_{known.problem.time_name}" for name in known.velocities)
    for name in (*known.problem.fields, *velocities):
        yield f"{known.code(initial[name].expression)} + zeros"


def _balance(known: Formulation) -> Iterator[str]:
    rows = (
        f"np.where(free_{name}, {_difference(known, equation)}, {name}_ - {name})"
        for name, equation in zip(known.fields, known.problem.equations, strict=True)
    )
    yield _lines(
        "def residual(state):",
        f"    {_targets(f'{name}_' for name in known.fields)} = state.reshape(-1, *shape)",
        f"    {_targets(known.fields)} = closed(state)",
        *_stacked("    return ", rows, ".ravel()"),
    )
    yield parts.DIFFERENCES
    yield parts.STEADY.format(fields=len(known.fields), **_sampling(known))


def _difference(known: Formulation, equation: Equation) -> str:
    return f"{known.printer.code(equation.left)} - ({known.printer.code(equation.right)})"


def _sampling(known: Formulation) -> dict[str, str]:
    """Return what takes values at the nodes to those at the points."""
    letters = "ij"[: len(known.space)]
    functions = ["around" if known.periodic(axis) else "between" for axis in known.problem.space]
    weights = [
        f"{function}(axes[{number}][0], axes[{number}][2], points[:, {number}])"
        for number, function in enumerate(functions)
    ]
    return {
        "einsum": f"fk{letters},{','.join(f'm{letter}' for letter in letters)}->fkm",
        "weights": ", ".join(weights),
    }


def _targets(names: Iterable[str]) -> str:
    """Return names as a tuple is written."""
    listed = list(names)
    return ", ".join(listed) + "," * (len(listed) == 1)


def _stacked(before: str, rows: Iterable[str], after: str = "") -> Iterator[str]:
    indent = " " * (len(before) - len(before.lstrip()))
    yield f"{before}np.stack(["
    yield from (f"{indent}    {row}," for row in rows)
    yield f"{indent}]){after}"


def _lines(*lines: str) -> str:
    return "\n".join(lines)
