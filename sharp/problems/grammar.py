"""The expression grammar: text to trees by operator precedence, and never through `eval`.

    equation   := expression "=" expression
    expression := number | name | "(" expression ")" | "-" expression
                | function "(" expression "," … ")"
                | expression ("+" | "-" | "*" | "/" | "**" | "^") expression
                | expression ("<" | "<=" | ">" | ">=" | "and" | "or") expression     conditions of piecewise
                | field_xx | "(" expression ")_xx" | "D(" expression "," coordinate "," … ")"
                | "lap(" expression ")" | "grad(" expression ")" | "div(" vector ")"
    piecewise(value, condition, value, condition, …, otherwise)

`^` means `**`, which binds to the right and tighter than a sign: `-x**2` is `-(x**2)`. Nesting is bounded
here, length in `tokens`, powers and constants in `rules`, so that no text can stall whoever reads it. The
method is top-down operator precedence (V. R. Pratt, POPL 1973).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharp.error_messages import clip, valid_values
from sharp.errors import SpecificationError
from sharp.problems import expression_typing
from sharp.problems.expression_typing import TypedExpression
from sharp.problems.expressions import (
    CONSTANTS,
    FUNCTIONS,
    PRECEDENCE,
    SIGN,
    Equation,
    Name,
    Node,
    to_text,
    value_of,
)
from sharp.problems.tokens import GrammarError, Token, tokenize

if TYPE_CHECKING:
    import sympy

MAX_NESTING = 40

DERIVATIVES = ("D", "lap", "grad", "div")
RESERVED = frozenset({*FUNCTIONS, *CONSTANTS, *DERIVATIVES, "piecewise", "and", "or"})

_ARITY: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys([*FUNCTIONS, *DERIVATIVES], (1, 1)),
    "atan2": (2, 2),
    "min": (1, 50),
    "max": (1, 50),
    "piecewise": (3, 49),
    "D": (2, 1 + expression_typing.MAX_ORDER),
}


@dataclass(frozen=True)
class Scope:
    """What the names of an expression may be.

    `names` holds all that may stand alone. `fields` are those that may carry derivatives, along
    `coordinates`; without coordinates an expression has none. Unit expressions have no `functions`.
    """

    names: frozenset[str]
    fields: tuple[str, ...] = ()
    coordinates: tuple[str, ...] = ()
    functions: bool = True

    @classmethod
    def of(cls, names: Iterable[str], fields: Iterable[str] = (), coordinates: Iterable[str] = ()) -> Scope:
        """Build a scope of parameters and the like, fields and coordinates, with the constants."""
        fields, coordinates = tuple(fields), tuple(coordinates)
        return cls(frozenset([*names, *fields, *coordinates, *CONSTANTS]), fields, coordinates)


def parse_tree(text: str, scope: Scope) -> Node:
    """Parse an expression with a value.

    Raises `SpecificationError` naming the column, what was expected and the valid names.
    """
    try:
        parser = _Parser(text, scope)
        tree = parser.number(0).node
        parser.expect("end", "an operator or the end of the expression")
    except GrammarError as error:
        raise _located(text, error) from None
    return tree


def parse_equation_tree(text: str, scope: Scope) -> Equation:
    """Parse `left = right`; raises `SpecificationError` like `parse_tree`."""
    try:
        parser = _Parser(text, scope)
        left = parser.number(0).node
        parser.expect("=", "an operator, or '=' and the right side of the equation")
        right = parser.number(0).node
        parser.expect("end", "an operator or the end of the equation")
    except GrammarError as error:
        raise _located(text, error) from None
    return Equation(left, right)


def parse_expression(text: str, names: Iterable[str]) -> sympy.Expr:
    """Parse an expression in some names to sympy, where each name is a plain `Symbol`.

    Nothing is evaluated: the result has the structure of the text, and `.doit()` simplifies it. Raises
    `SpecificationError` naming the column, what was expected and the valid names.
    """
    from sharp.problems.symbolic import to_sympy

    names = tuple(names)
    if hidden := sorted(RESERVED.intersection(names)):
        raise SpecificationError(f"{', '.join(hidden)}: words of the grammar cannot be names of values")
    return to_sympy(parse_tree(text, Scope.of(names)))


def evaluate(expression: sympy.Expr, values: Mapping[str, float]) -> float:
    """Return the value of what `parse_expression` returned, in float arithmetic.

    Raises `SpecificationError` for a name without a value and where the result is not a finite real number.
    """
    from sharp.problems.symbolic import float_value

    return _real_value(lambda: float_value(expression, values), lambda: str(expression), values)


def evaluate_tree(tree: Node, values: Mapping[str, float]) -> float:
    """Return the value of a tree without derivatives; raises `SpecificationError` like `evaluate`."""
    return _real_value(lambda: value_of(tree, values), lambda: to_text(tree), values)


def _real_value(compute: Callable[[], float], show: Callable[[], str], values: Mapping[str, float]) -> float:
    try:
        return compute()
    except KeyError as error:
        name = str(error.args[0])
        known = valid_values("names", name, values)
        raise SpecificationError(f"'{clip(show())}' needs a value of '{name}'; {known}") from None
    except (ArithmeticError, ValueError) as error:
        given = ", ".join(f"{name} = {value:g}" for name, value in values.items()) or "no values"
        raise SpecificationError(f"'{clip(show())}' has no finite real value with {given}: {error}") from None


def _located(text: str, error: GrammarError) -> SpecificationError:
    return SpecificationError(f"column {error.column} of '{clip(text)}': {error.message}")


class _Parser:
    """One pass over the tokens of a text; raises `GrammarError`."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.scope = scope
        self.tokens = tokenize(text)
        self.position = 0
        self.nesting = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def expect(self, kind: str, expected: str) -> Token:
        if self.token.kind != kind:
            raise GrammarError(self.token.column, f"expected {expected}, found {self.token}{self._hint()}")
        return self.take()

    def _hint(self) -> str:
        """Explain the usual slips."""
        if self.token.kind in ("number", "name", "("):
            return "; a product is written with '*'"
        if self.token.kind == "mark":
            return "; a derivative follows a field or a closing parenthesis at once: u_xx, (u**2)_x"
        return {"==": "; the two sides of an equation are separated by one '='"}.get(self.token.kind, "")

    def number(self, binding: int) -> TypedExpression:
        part = self.parse(binding)
        expression_typing.require(part, "number")
        return part

    def parse(self, binding: int) -> TypedExpression:
        """Read the longest expression whose operators bind tighter than `binding`."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise GrammarError(self.token.column, f"the expression is nested more than {MAX_NESTING} deep")
        left = self.operand()
        while (op := self.operator()) is not None and PRECEDENCE[op] > binding:
            column = self.take().column
            right = self.parse(PRECEDENCE[op] - (op == "**"))
            left = expression_typing.binary(op, left, right, column)
        self.nesting -= 1
        return left

    def operator(self) -> str | None:
        token = self.token
        text = "**" if token.text == "^" else token.text
        return text if text in PRECEDENCE else None

    def operand(self) -> TypedExpression:
        token = self.take()
        match token.kind:
            case "number":
                part = expression_typing.number(token.text, token.column)
            case "name" if token.text not in ("and", "or"):
                part = self.named(token)
            case "(":
                part = self.parse(0)
                self.expect(")", "an operator or ')'")
            case "-":
                return expression_typing.negative(self.parse(SIGN), token.column)
            case "+":
                return self.parse(SIGN)
            case _:
                raise GrammarError(token.column, f"expected a number, a name, '(' or a sign, found {token}")
        return self.subscripts(part)

    def subscripts(self, part: TypedExpression) -> TypedExpression:
        """Read the derivative marks that follow at once: `(u**2)_x`."""
        previous = self.tokens[self.position - 1]
        while self.token.kind == "mark" and self.token.column == previous.after:
            previous = self.take()
            by = self.coordinates(previous.text[1:], previous.column + 1)
            part = self.derivative(part, by, previous.column)
        return part

    def derivative(self, part: TypedExpression, by: list[str], column: int) -> TypedExpression:
        if isinstance(part.node, Name) and part.node.name not in self.scope.fields:
            name = part.node.name
            valid = valid_values("fields", name, self.scope.fields)
            raise GrammarError(part.column, f"'{name}' is not a field that could be differentiated; {valid}")
        return expression_typing.derivative(part, by, column)

    def named(self, token: Token) -> TypedExpression:
        text, scope = token.text, self.scope
        if self.token.kind == "(" and scope.functions:
            return self.call(token)
        if text in scope.names:
            return expression_typing.name(text, token.column)
        if text in RESERVED and scope.functions:
            raise GrammarError(token.column, f"'{text}' is a function: write {text}(…)")
        field, _, suffix = text.rpartition("_")
        if field in scope.fields:
            by = self.coordinates(suffix, token.column + len(field) + 1)
            return expression_typing.derivative(expression_typing.name(field, token.column), by, token.column)
        raise GrammarError(token.column, f"unknown name '{text}'; {valid_values('names', text, scope.names)}")

    def call(self, token: Token) -> TypedExpression:
        name = token.text
        self.check_callable(token)
        self.take()
        arguments = [self.parse(0)]
        while self.token.kind == ",":
            self.take()
            arguments.append(self.parse(0))
        self.expect(")", "an operator, ',' or ')'")
        _check_count(name, len(arguments), token.column)
        if name == "D":
            by = [self.coordinate(argument) for argument in arguments[1:]]
            return self.derivative(arguments[0], by, token.column)
        return expression_typing.apply(name, arguments, token.column)

    def check_callable(self, token: Token) -> None:
        name = token.text
        if name in self.scope.names:
            raise GrammarError(
                self.token.column, f"'{name}' is not a function; a product is written with '*'"
            )
        valid = set(_ARITY) - (set() if self.scope.coordinates else set(DERIVATIVES))
        if name not in valid:
            raise GrammarError(
                token.column, f"unknown function '{name}'; {valid_values('functions', name, valid)}"
            )

    def coordinate(self, part: TypedExpression) -> str:
        text = to_text(part.node)
        if text not in self.scope.coordinates:
            valid = valid_values("coordinates", text, self.scope.coordinates)
            raise GrammarError(part.column, f"'{clip(text)}' is not a coordinate; {valid}")
        return text

    def coordinates(self, suffix: str, column: int) -> list[str]:
        """Split the letters of a derivative mark into coordinates, the longest names first."""
        by, rest = [], suffix
        while rest:
            fitting = [name for name in self.scope.coordinates if rest.startswith(name)]
            if not fitting:
                valid = valid_values("coordinates", rest, self.scope.coordinates)
                raise GrammarError(
                    column, f"the derivative mark '_{suffix}' is not made of coordinates; {valid}"
                )
            by.append(max(fitting, key=len))
            rest = rest.removeprefix(by[-1])
        return by


def _check_count(function: str, found: int, column: int) -> None:
    least, most = _ARITY[function]
    if not least <= found <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise GrammarError(
            column, f"'{function}' takes {wanted} argument{'s' * (wanted != '1')}, found {found}"
        )
    if function == "piecewise" and found % 2 == 0:
        raise GrammarError(
            column, "'piecewise' takes value, condition, …, otherwise: an odd number of arguments"
        )
