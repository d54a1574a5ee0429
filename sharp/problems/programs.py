"""Sympy expressions as programs for numpy, jax or torch arrays, without generating or executing code.

A program is a list of elementary operations, as the tape of automatic differentiation is (A. Griewank and A. Walther,
Evaluating Derivatives, 2008, ch. 2): every distinct subexpression is computed once, in an order that depends on the
expressions alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib import import_module
from operator import add, and_, mul, or_
from typing import Any

import sympy

from sharp.errors import SpecificationError

LIBRARIES = ("numpy", "jax", "torch")

Operation = Callable[..., Any]


# Numbers below this one, and above its inverse, are at the end of what floats hold.
_LEAST = 1e-250


@dataclass(frozen=True)
class Instruction:
    """An operation on the values of earlier slots."""

    operation: str
    slots: tuple[int, ...]


@dataclass(frozen=True)
class ExpressionProgram:
    """Expressions of some names, ready to be computed on arrays.

    The first slots hold the arguments, then the constants, then the result of each step; `outputs` are the slots of
    the expressions.
    """

    names: tuple[str, ...]
    constants: tuple[float, ...]
    steps: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    def __call__(self, *arguments: Any, library: str = "numpy") -> tuple[Any, ...]:
        """Return the value of each expression; arguments and values broadcast, and a constant stays a number."""
        operations = _operations(library)
        values = [*arguments, *self.constants]
        for step in self.steps:
            values.append(operations[step.operation](*(values[slot] for slot in step.slots)))
        return tuple(values[slot] for slot in self.outputs)


def compile_expressions(expressions: Sequence[sympy.Expr], names: Sequence[str]) -> ExpressionProgram:
    """Compile sympy expressions of plain symbols into one program.

    Raises `SpecificationError` for a symbol that is not among the names and for functions outside the grammar.
    """
    tape = _Tape(tuple(names))
    for expression in expressions:
        tape.collect_constants(expression)
    outputs = tuple(tape.slot(expression) for expression in expressions)
    return ExpressionProgram(tape.names, tuple(tape.constants), tuple(tape.steps), outputs)


@dataclass
class _Tape:
    names: tuple[str, ...]
    constants: list[float] = field(default_factory=list)
    steps: list[Instruction] = field(default_factory=list)
    slots: dict[Any, int] = field(default_factory=dict)
    arguments: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.arguments = {name: index for index, name in enumerate(self.names)}

    def collect_constants(self, expression: Any) -> None:
        """Give every number below an expression a slot, before the first step has one."""
        for part in sympy.preorder_traversal(expression):
            if _is_number(part) and part not in self.slots:
                self.slots[part] = len(self.names) + len(self.constants)
                self.constants.append(_number(part))
            elif (moderate := _moderate(part)) is not part:
                self.collect_constants(moderate)

    def slot(self, expression: Any) -> int:
        """Return where the value of an expression will be, after adding the steps that it takes."""
        found = self.slots.get(expression)
        if found is None:
            found = self.slots[expression] = self._computed(expression)
        return found

    def _computed(self, expression: Any) -> int:
        if isinstance(expression, sympy.Symbol):
            return self._argument(expression.name)
        if isinstance(expression, sympy.Piecewise):
            return self._piecewise(expression)
        operation, operands = _operation(_moderate(expression))
        return self._step(operation, *(self.slot(operand) for operand in operands))

    def _argument(self, name: str) -> int:
        if name not in self.arguments:
            raise SpecificationError(
                f"'{name}' has no value here; valid names: {', '.join(self.names) or 'none'}"
            )
        return self.arguments[name]

    def _piecewise(self, expression: Any) -> int:
        *cases, (otherwise, certain) = expression.args
        if certain != sympy.true:
            raise SpecificationError(f"'{expression}' has no value where none of its conditions holds")
        value = self.slot(otherwise)
        for chosen, condition in reversed(cases):
            value = self._step("where", self.slot(condition), self.slot(chosen), value)
        return value

    def _step(self, operation: str, *slots: int) -> int:
        self.steps.append(Instruction(operation, slots))
        return len(self.names) + len(self.constants) + len(self.steps) - 1


def _moderate(expression: Any) -> Any:
    """Return a product with a factor that floats cannot hold within one of its exponentials.

    Sympy splits `exp(a*x - 1e5)` into `exp(a*x)` and a number that is zero as a float.
    """
    if not isinstance(expression, sympy.Mul):
        return expression
    number, rest = expression.as_coeff_Mul()
    grown = next((each for each in sympy.Mul.make_args(rest) if isinstance(each, sympy.exp)), None)
    if grown is None or not number.is_Float or _LEAST < abs(number) < 1 / _LEAST:
        return expression
    others = [each for each in sympy.Mul.make_args(rest) if each is not grown]
    within = sympy.exp(grown.args[0] + sympy.log(abs(number)), evaluate=False)
    return sympy.Mul(sympy.sign(number), within, *others, evaluate=False)


def _is_number(expression: Any) -> bool:
    if expression in (sympy.true, sympy.false):
        return True
    return isinstance(expression, sympy.Expr) and bool(expression.is_number) and not expression.free_symbols


def _number(expression: Any) -> float:
    if expression in (sympy.true, sympy.false):
        return float(bool(expression))
    try:
        value = complex(expression)
    except (TypeError, ArithmeticError):
        raise SpecificationError(f"'{expression}' is no finite real number") from None
    if value.imag or value != value or abs(value) == float("inf"):
        raise SpecificationError(f"'{expression}' is no finite real number")
    return value.real


_NAMED: Mapping[Any, str] = {
    **{getattr(sympy, name): name for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{getattr(sympy, name): name for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    **{getattr(sympy, name): name for name in ("exp", "log", "erf", "erfc", "sign")},
    sympy.Add: "add",
    sympy.Mul: "mul",
    sympy.Abs: "abs",
    sympy.Min: "min",
    sympy.Max: "max",
    sympy.And: "and",
    sympy.Or: "or",
    sympy.StrictLessThan: "less",
    sympy.LessThan: "at_most",
    sympy.StrictGreaterThan: "greater",
    sympy.GreaterThan: "at_least",
}


def _operation(expression: Any) -> tuple[str, Sequence[Any]]:
    match expression:
        case sympy.Pow(base=base, exp=sympy.Rational(p=1, q=2)):
            return "sqrt", (base,)
        case sympy.Pow():
            return "pow", expression.args
        case sympy.Heaviside():
            return "heaviside", expression.args[:1]
        case sympy.besselj() if expression.order in (0, 1):
            return f"j{expression.order}", (expression.argument,)
        case sympy.besselj():
            return "jv", expression.args
        case sympy.DiracDelta():
            # The derivative of a step: zero everywhere but on a set that no node can resolve.
            return "zero", expression.args[:1]
    if expression.func not in _NAMED:
        raise SpecificationError(f"'{expression.func.__name__}' is not a function that can be computed")
    return _NAMED[expression.func], expression.args


@cache
def _operations(library: str) -> Mapping[str, Operation]:
    if library not in LIBRARIES:
        raise ValueError(f"unknown array library '{library}'; valid libraries: {', '.join(LIBRARIES)}")
    xp = import_module({"numpy": "numpy", "jax": "jax.numpy", "torch": "torch"}[library])
    names = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "abs", "sign", "where")
    return {
        **{name: _on_arrays(library, getattr(xp, name)) for name in names},
        **{name: _on_arrays(library, _inverse(xp, name)) for name in ("asin", "acos", "atan", "atan2")},
        **{name: _on_arrays(library, _inverse(xp, name)) for name in ("asinh", "acosh", "atanh")},
        **{name: _on_arrays(library, function) for name, function in _special(library).items()},
        "add": lambda *terms: reduce(add, terms),
        "mul": lambda *factors: reduce(mul, factors),
        "pow": _on_arrays(library, _power(xp)),
        "min": lambda *parts: reduce(_on_arrays(library, xp.minimum), parts),
        "max": lambda *parts: reduce(_on_arrays(library, xp.maximum), parts),
        "and": lambda *parts: reduce(and_, parts),
        "or": lambda *parts: reduce(or_, parts),
        "less": lambda a, b: a < b,
        "at_most": lambda a, b: a <= b,
        "greater": lambda a, b: a > b,
        "at_least": lambda a, b: a >= b,
        "heaviside": lambda x: _operations(library)["where"](x > 0, 1.0, 0.5 * (x == 0)),
        "zero": lambda x: 0.0 * x,
    }


def _inverse(xp: Any, name: str) -> Operation:
    """Return `asin` under the name that a library has for it: the array standard's, or numpy's `arcsin`."""
    function: Operation = getattr(xp, name, None) or getattr(xp, "arc" + name[1:])
    return function


def _special(library: str) -> Mapping[str, Operation]:
    if library == "torch":
        special = import_module("torch.special")
        j0, j1 = _bessel_of_torch()
        return {"erf": special.erf, "erfc": special.erfc, "j0": j0, "j1": j1}
    if library == "jax":
        special = import_module("jax.scipy.special")
        bessel = {f"j{n}": lambda x, n=n: special.bessel_jn(x, v=n, n_iter=100)[n] for n in (0, 1)}
        return {"erf": special.erf, "erfc": special.erfc, **bessel}
    special = import_module("scipy.special")
    return {name: getattr(special, name) for name in ("erf", "erfc", "j0", "j1", "jv")}


def _bessel_of_torch() -> tuple[Operation, Operation]:
    """Return J0 and J1 with their derivatives, which torch lacks: J0' = -J1 and J1' = J0 - J1/x.

    Source: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 1964, 9.1.28 and 9.1.30.
    """
    torch = import_module("torch")
    special = import_module("torch.special")

    def forward(function: Operation) -> Operation:
        def computed(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return function(x)

        return computed

    def back_through_j0(context: Any, gradient: Any) -> Any:
        return -gradient * j1(*context.saved_tensors)

    def back_through_j1(context: Any, gradient: Any) -> Any:
        (x,) = context.saved_tensors
        safe = torch.where(x == 0, 1.0, x)
        return gradient * torch.where(x == 0, 0.5, j0(x) - j1(safe) / safe)

    def differentiable(name: str, function: Operation, backward: Operation) -> Operation:
        methods = {"forward": staticmethod(forward(function)), "backward": staticmethod(backward)}
        made: Any = type(name, (torch.autograd.Function,), methods)
        return made.apply  # type: ignore[no-any-return]

    j0 = differentiable("J0", special.bessel_j0, back_through_j0)
    j1 = differentiable("J1", special.bessel_j1, back_through_j1)
    return j0, j1


def _power(xp: Any) -> Operation:
    def power(base: Any, exponent: Any) -> Any:
        """Whole exponents, which are most, as products: `numpy.power` is ten times slower."""
        if isinstance(exponent, float) and exponent.is_integer() and 0 < abs(exponent) <= 8:
            product = reduce(mul, [base] * int(abs(exponent)))
            if exponent > 0:
                return product
            return math.inf if isinstance(product, float) and product == 0 else 1.0 / product
        return xp.pow(base, exponent) if hasattr(xp, "pow") else xp.power(base, exponent)

    return power


def _on_arrays(library: str, function: Operation) -> Operation:
    """Torch takes tensors alone, so numbers become tensors first."""
    if library != "torch":
        return function
    torch = import_module("torch")

    def converted(*arguments: Any) -> Any:
        tensors = [part for part in arguments if isinstance(part, torch.Tensor)]
        like = tensors[0] if tensors else torch.zeros((), dtype=torch.float64)
        kind = like.dtype if like.dtype.is_floating_point else torch.float64
        return function(
            *(
                part
                if isinstance(part, torch.Tensor)
                else torch.as_tensor(part, dtype=kind, device=like.device)
                for part in arguments
            )
        )

    return converted
