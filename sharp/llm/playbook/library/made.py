"""A part of the library made at run time: for an equation that a prompt describes and the library does not have.

Programs of it follow the method of lines: the equation as it is written, on a mesh in space, by a method in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from sharp.errors import SpecificationError
from sharp.llm.playbook.library import lines
from sharp.llm.playbook.library.blocks import HOST, IMPORTS, Block, Family, defined_names
from sharp.llm.playbook.library.meshing import Meshing
from sharp.llm.playbook.library.recipes import Recipes
from sharp.llm.playbook.library.semidiscrete import Semidiscrete
from sharp.llm.playbook.library.stepping import solvers
from sharp.problems.formulation import Formulation
from sharp.problems.printing import Unprintable

_CONSTANTS: Mapping[str, tuple[str, ...]] = {
    "CFL": ("0.8", "0.6", "0.4"),
    "MAX_STEP": ("1e-3", "2e-3", "5e-4"),
    "GRID_FACTOR": ("2",),
    "METHOD": ('"Radau"', '"BDF"', '"LSODA"'),
    "RTOL": ("1e-6", "1e-5", "1e-7"),
}
# Nodes of a spectral axis in one and in two dimensions; steps of waves are the shorter the more there are.
_NODES = {1: ("65", "49"), 2: ("21", "17")}
_NODES_EXPLICIT = ("49", "33")
# Names in functions that parameters, coordinates or fields are passed to.
_LOCAL = (
    "state axes rate diff along values number initial times moment group each frames total start stop steps dt advance "
    "slope now solution sample one run samples evaluations states flat scale mesh rates closed size to_mesh from_mesh "
    "points solver around NODES DTYPE"
)


@dataclass(frozen=True)
class Made:
    """What became of a description: a family, or the reason why there is none."""

    family: Family | None
    reason: str = ""


@cache
def made(document: str) -> Made:
    """Return what a specification in JSON gives, which says why if programs of this kind do not treat the problem."""
    from sharp.problems.loader import parse_problem

    try:
        problem = parse_problem(document, "the description")
        given = problem.specification.coefficients
        arrays = {port.field: port.name for port in problem.interface.inputs if port.field in given}
        return Made(_family(document, Semidiscrete(Formulation(problem, _taken(), arrays))))
    except (SpecificationError, Unprintable) as error:
        return Made(None, str(error))


@cache
def _taken() -> frozenset[str]:
    """Return the names that programs use themselves."""
    blocks = (
        *lines.spaces(("bounded", "periodic")),
        *lines.CLOSURES,
        *lines.INTERPOLATIONS,
        *lines.INTEGRATORS,
        *lines.STEP_SIZES,
    )
    functions = {name for block in blocks for name in defined_names(block.source)}
    return frozenset({*_LOCAL.split(), *_CONSTANTS, *IMPORTS, *functions})


def _family(name: str, scheme: Semidiscrete) -> Family:
    scheme.check()
    problem = scheme.known.problem
    mesh = Meshing(problem, frozenset(axis for axis in problem.space if scheme.known.periodic(axis)))
    returned = ", ".join(port.name for port in problem.interface.returns)
    nodes = _NODES_EXPLICIT if scheme.dimension == 1 and not scheme.stiff else _NODES[scheme.dimension]
    return Family(
        name=name,
        title=f"{problem.title}: {'; '.join(problem.specification.equations)}",
        signature=", ".join(_signature(scheme.known)),
        returns=f"Return {returned} [batch, T+1, …] at all output times for the initial values given.",
        args=", ".join(scheme.arguments),
        initial="\n".join(_initial(scheme)),
        result=f"return {', '.join(_results(scheme.known))}",
        constants={**_CONSTANTS, "NODES": nodes, **_fixed(scheme.known)},
        blocks=tuple(_blocks(scheme, mesh)),
        recipes=tuple(Recipes(scheme, mesh.cells).all()),
    )


def _blocks(scheme: Semidiscrete, mesh: Meshing) -> Iterator[Block]:
    yield from (*lines.spaces(mesh.kinds), *lines.INTEGRATORS, *lines.STEP_SIZES)
    if scheme.sloped:
        yield from lines.CLOSURES
    yield Block("operator", "as-written", 2, "the equation as it is written", scheme.operator(), HOST)
    yield from mesh.blocks()
    yield from solvers(scheme.arguments, list(scheme.known.arrays.values()), scheme.dimension)


def _signature(known: Formulation) -> Iterator[str]:
    interface = known.problem.interface
    yield from (port.name for port in interface.inputs)
    yield str(interface.coordinates)
    yield from (known.names[name] for name in interface.parameters)


def _fixed(known: Formulation) -> dict[str, tuple[str, ...]]:
    """Return the values of parameters that are not passed."""
    values, passed = known.problem.parameters, known.problem.interface.parameters
    return {known.names[name]: (repr(value),) for name, value in values.items() if name not in passed}


def _initial(scheme: Semidiscrete) -> Iterator[str]:
    interface = scheme.known.problem.interface
    ports = {port.field: port.name for port in interface.inputs}
    starts = ", ".join(f"np.asarray({ports[name]}, dtype=DTYPE)" for name in scheme.components)
    yield f"times = [float(moment) for moment in {interface.coordinates}]"
    yield f"initial = np.stack([{starts}])"
    yield "axes = mesh(initial.shape[2:])"
    yield "state = to_mesh(initial, axes).astype(DTYPE)"
    for name in scheme.known.arrays.values():
        if name in scheme.arguments:
            yield f"{name} = to_mesh(np.asarray({name}, dtype=DTYPE), axes)"


def _results(known: Formulation) -> Iterator[str]:
    for port in known.problem.interface.returns:
        yield f"np.asarray(solution[{known.problem.fields.index(port.field)}])"
