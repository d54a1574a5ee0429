"""The equations of a problem as functions of the fields' derivatives, linearised about a state.

An equation is a residual R(x, t, u, u_x, u_t, …) = 0. A *jet* is a field or one of its derivatives in it. The
partial derivatives of R by the jets, taken at a point and a state, are the coefficients of the linearised
equation, frozen there: what decides whether short waves are damped, carried or amplified.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from sharp.errors import SpecificationError
from sharp.problems.expressions import Binary, Name, Negative, Node, Number, with_operands
from sharp.problems.problem import Problem
from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.problems.sampling import Array
from sharp.problems.symbolic import to_sympy


@dataclass(frozen=True)
class DerivativeSymbol:
    """A field or one of its derivatives: how often along each coordinate, time being the last."""

    field: str
    orders: tuple[int, ...]

    @property
    def symbol(self) -> sympy.Symbol:
        """The symbol that stands for it in residuals; no name of a specification has blanks."""
        return sympy.Symbol(f"jet {self.field} {' '.join(map(str, self.orders))}", real=True)

    @classmethod
    def of(cls, atom: Any, symbols: Sequence[Any]) -> DerivativeSymbol:
        """Return what an applied function or a derivative of one is, for the symbols of the coordinates."""
        call, counts = (atom.expr, dict(atom.variable_count)) if atom.is_Derivative else (atom, {})
        return cls(call.func.__name__, tuple(int(counts.get(symbol, 0)) for symbol in symbols))


# What each jet is, as an expression of the coordinates; sympy's nan where it is not known.
State = Callable[[DerivativeSymbol], Any]


@dataclass(frozen=True)
class LinearisedSystem:
    """The equations of a problem; `residuals` hold `symbols` of the coordinates and of the jets."""

    problem: Problem
    symbols: tuple[Any, ...]
    residuals: tuple[Any, ...]
    jets: tuple[DerivativeSymbol, ...]
    # Symbols without a value: coefficients that are sampled, and an unknown eigenvalue.
    unknown: tuple[Any, ...]

    @cached_property
    def coefficients(self) -> tuple[tuple[int, DerivativeSymbol, Any], ...]:
        """The derivatives of the residuals by the jets that are not zero: equation, jet and expression."""
        entries = (
            (row, jet, residual.diff(jet.symbol))
            for row, residual in enumerate(self.residuals)
            for jet in self.jets
        )
        return tuple(entry for entry in entries if entry[2] != 0)

    @cached_property
    def linear(self) -> bool:
        """Whether no coefficient depends on a field."""
        symbols = {jet.symbol for jet in self.jets}
        return not any(expression.free_symbols & symbols for _, _, expression in self.coefficients)

    @cached_property
    def _frozen(self) -> Callable[..., Array]:
        return compiled(self._arguments, [expression for _, _, expression in self.coefficients])

    @cached_property
    def _terms(self) -> Callable[..., Array]:
        terms = [sympy.Add.make_args(residual) for residual in self.residuals]
        return compiled(self._arguments, [term for row in terms for term in row])

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return (*self.symbols, *(jet.symbol for jet in self.jets), *self.unknown)

    def order(self, field: str, coordinate: str) -> int:
        """Return the highest derivative of a field along a coordinate."""
        column = self.problem.coordinates.index(coordinate)
        return max((jet.orders[column] for jet in self.jets if jet.field == field), default=0)

    def symbol(
        self, frozen: Array, column: int, exponents: NDArray[np.complex128], *, principal: bool = False
    ) -> NDArray[np.complex128]:
        """Return what the equations become for exp(exponents·(x, t)), as matrices by powers of one of the exponents.

        The matrices are [..., order + 1, equations, fields], `frozen` [entries, ...] the coefficients at points,
        `exponents` [..., d + 1], and `column` the number of the coordinate whose exponent is left open. With
        `principal`, highest derivatives alone are taken.
        """
        problem = self.problem
        shape = max(jet.orders[column] for jet in self.jets) + 1, len(problem.equations), len(problem.fields)
        many = np.broadcast_shapes(frozen.shape[1:], exponents.shape[:-1])
        matrices, others = np.zeros((*many, *shape), dtype=complex), np.delete(exponents, column, axis=-1)
        for (row, jet, _), value in zip(self.coefficients, frozen, strict=True):
            if not principal or sum(jet.orders) == max(
                sum(other.orders) for other in self.jets if other.field == jet.field
            ):
                powers = np.prod(others ** np.delete(jet.orders, column), axis=-1)
                matrices[..., jet.orders[column], row, problem.fields.index(jet.field)] += value * powers
        return matrices

    def frozen(self, points: Array, state: State) -> Array:
        """Return the coefficients [entries, n] at points [n, d] and a state, NaN where not known."""
        return self._frozen(*self._values(points, state))

    def distinct(self, points: Array, state: State) -> tuple[Array, Array]:
        """Return the points [m, d] and coefficients [entries, m] where these are known, equal ones once."""
        frozen = self.frozen(points, state)
        known = np.flatnonzero(np.isfinite(frozen).all(axis=0))
        _, first = np.unique(frozen[:, known], axis=1, return_index=True)
        chosen = known[np.sort(first)]
        return points[chosen], frozen[:, chosen]

    def terms(self, points: Array, state: State) -> list[Array]:
        """Return for each equation the terms [k, n] of its residual at points, the fields being `state`."""
        found = self._terms(*self._values(points, state))
        counts = [len(sympy.Add.make_args(residual)) for residual in self.residuals]
        return np.split(found, np.cumsum(counts)[:-1])

    def _values(self, points: Array, state: State) -> list[Array]:
        jets = compiled(self.symbols, [state(jet) for jet in self.jets])(*points.T)
        return [*points.T, *jets, *np.full((len(self.unknown), len(points)), np.nan)]


def linearised_system(problem: Problem) -> LinearisedSystem:
    """Return the equations of a problem, with the values of its parameters."""
    symbols = _symbols(problem)
    plain = tuple(sympy.Symbol(symbol.name) for symbol in symbols)
    functions = {field: sympy.Function(field)(*plain) for field in problem.fields}
    sampled = [name for name, given in problem.specification.coefficients.items() if given.family]
    functions |= {name: sympy.Function(name)(*plain[: len(problem.space)]) for name in sampled}
    real = dict(zip(plain, symbols, strict=True))
    real |= {
        call: sympy.Function(name, real=True)(*call.args).xreplace(real) for name, call in functions.items()
    }
    residuals = [
        _built(problem, Binary("-", equation.left, equation.right), functions).xreplace(real).doit()
        for equation in problem.equations
    ]
    return _with_jets(problem, symbols, residuals, [real[functions[name]] for name in sampled])


def _built(problem: Problem, tree: Node, functions: Mapping[str, Any]) -> Any:
    return to_sympy(_filled(problem, tree), functions, problem.space, problem.radial_power)


@lru_cache(maxsize=256)
def expression(problem: Problem, text: str) -> Any:
    """Return an expression of the specification in symbols of the coordinates that are known to be real."""
    real = {sympy.Symbol(symbol.name): symbol for symbol in _symbols(problem)}
    return _built(problem, problem.tree(text), {}).xreplace(real).doit()


def _filled(problem: Problem, tree: Node, exponent: bool = False) -> Node:
    """Put in the values of parameters and the expressions of coefficients.

    Integers become floats but in exponents: sympy would spend without end on `9**9**9` in exact arithmetic.
    """
    match tree:
        case Number(value):
            return tree if exponent or value in (0, 1) else Number(float(value))
        case Name(name) if name in problem.parameters:
            value = problem.parameters[name]
            whole = value.is_integer() and (exponent or value in (0, 1))
            return Number(int(value) if whole else value)
        case Name(name) if given := problem.specification.coefficients.get(name):
            return _filled(problem, problem.tree(given.expression)) if given.expression else tree
        case Binary("**", left, right):
            return Binary("**", _filled(problem, left), _filled(problem, right, exponent=True))
    inherited = exponent and isinstance(tree, Negative)
    return with_operands(tree, lambda part: _filled(problem, part, inherited))


def _with_jets(
    problem: Problem, symbols: tuple[Any, ...], residuals: list[Any], sampled: list[Any]
) -> LinearisedSystem:
    """Replace the fields and their derivatives by symbols, and what is not known by others."""
    atoms = set().union(
        *(residual.atoms(sympy.Derivative, sympy.core.function.AppliedUndef) for residual in residuals)
    )
    jets, unknown = [], []
    replaced: dict[Any, Any] = {}
    for atom in sorted(atoms, key=str):
        jet = DerivativeSymbol.of(atom, symbols)
        symbol = replaced[atom] = jet.symbol
        if atom in sampled or getattr(atom, "expr", None) in sampled:
            unknown.append(symbol)
        else:
            jets.append(jet)
    changed = [residual.xreplace(replaced) for residual in residuals]
    found = set().union(*(residual.free_symbols for residual in changed))
    unknown += sorted(found - {*symbols, *replaced.values()}, key=str)
    return LinearisedSystem(
        problem,
        symbols,
        tuple(changed),
        tuple(jet for jet in jets if jet.symbol in found),
        tuple(symbol for symbol in unknown if symbol in found),
    )


def compiled(arguments: Sequence[Any], expressions: Sequence[Any]) -> Callable[..., Array]:
    """Return a function of arrays [n] that gives the values [k, n] of real expressions, NaN where there is none."""
    programs = [_program(tuple(arguments), sympy.sympify(expression)) for expression in expressions]

    def evaluate(*columns: Array) -> Array:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [np.nan if program is None else program(*columns)[0] for program in programs]
        rows = np.array([np.broadcast_to(row, columns[0].shape) for row in found]).reshape(len(found), -1)
        known = np.isfinite(rows) & (rows.imag == 0)
        return np.where(known, rows.real, np.nan).astype(float)

    return evaluate


@lru_cache(maxsize=4096)
def _program(arguments: tuple[Any, ...], expression: Any) -> ExpressionProgram | None:
    """Return the program of an expression, None where it has no real value whatever the arguments."""
    try:
        return compile_expressions([expression], [argument.name for argument in arguments])
    except SpecificationError:
        return None


def initial_state(problem: Problem) -> State:
    """Return the initial state; derivatives along time are known where the specification gives them."""
    return boundary_state(problem, {})


def boundary_state(problem: Problem, values: Mapping[str, str]) -> State:
    """Return the initial state with other values of the fields in `values`."""
    given, space = problem.specification.initial, _symbols(problem)[: len(problem.space)]

    def known(jet: DerivativeSymbol) -> Any:
        if jet.field in values and not any(jet.orders):
            return expression(problem, values[jet.field])
        marks = str(problem.time_name) * sum(jet.orders[len(space) :])
        condition = given.get(f"{jet.field}_{marks}" if marks else jet.field)
        if condition is None or condition.expression is None:
            return sympy.nan
        return _derivative(expression(problem, condition.expression), space, jet.orders)

    return known


def exact_state(problem: Problem) -> State:
    """Return the exact solution as a state."""
    values = problem.specification.reference.value
    return lambda jet: _derivative(expression(problem, values[jet.field]), _symbols(problem), jet.orders)


def _symbols(problem: Problem) -> tuple[Any, ...]:
    return tuple(sympy.Symbol(name, real=True) for name in problem.coordinates)


def _derivative(expression: Any, symbols: Sequence[Any], orders: Sequence[int]) -> Any:
    counts = [(symbol, count) for symbol, count in zip(symbols, orders, strict=False) if count]
    return sympy.diff(expression, *counts) if counts else expression
