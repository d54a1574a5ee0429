"""The expression grammar: text to trees by operator precedence, and never through `eval`.

    equation   := expression "=" expression
    expression := number | name | "(" expression ")" | "-" expression
                | function "(" expression "," … ")"
                | expression ("+" | "-" | "*" | "/" | "**" | "^") expression
                | expression ("<" | "<=" | ">" | ">=" | "and" | "or") expression     conditions of piecewise
                | field_xx | "(" expression ")_xx" | "D(" expression "," coordinate "," … ")"
                | "lap(" expression ")" | "grad(" expression ")" | "div(" vector ")"
    piecewise(value, condition, value, condition, …, otherwise)

`^` means `**`, which binds to the right and tighter than a sign: `-x**2` is `-(x**2)`. The method is top-down operator
precedence (V. R. Pratt, POPL 1973). Every part knows its kind (number, vector or condition), its value if it is
constant, and the largest product of nested constant exponents in it. Length, nesting, powers and constants are
bounded, so that no text can stall whoever reads it: `9**9**9**9` is refused before anything computes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sharp.error_messages import clip, valid_values
from sharp.errors import SpecificationError
from sharp.problems.expressions import (
    COMPARISONS,
    CONSTANTS,
    FUNCTIONS,
    PRECEDENCE,
    SIGN,
    Apply,
    Binary,
    Derivative,
    Equation,
    Name,
    Negative,
    Node,
    Number,
    finite,
    names_in,
    operate,
    to_text,
    value_of,
    walk,
    with_operands,
)

MAX_LENGTH = 2000
MAX_TOKENS = 300
_NOT_LOCAL = {
    **dict.fromkeys(("frac_lap", "fraclap", "fractional_laplacian"), "it is a fractional Laplacian"),
    **dict.fromkeys(("integral", "integrate", "Integral", "int"), "it is an integral"),
    **dict.fromkeys(("conv", "convolve", "convolution"), "it is a convolution"),
    **dict.fromkeys(("noise", "white_noise", "dW", "wiener", "brownian"), "it is noise"),
    "delay": "it looks back in time",
}
MAX_NESTING = 40
# How much longer an equation may be once its definitions are written out.
EXPANSION = 5
MAX_DIGITS = 40
MAX_ORDER = 8
MAX_EXPONENT = 100
MAX_TOTAL_EXPONENT = 1000

DERIVATIVES = ("D", "lap", "grad", "div")
RESERVED = frozenset({*FUNCTIONS, *CONSTANTS, *DERIVATIVES, "piecewise", "and", "or"})

_Kind = Literal["number", "vector", "condition"]
_ARITY: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys([*FUNCTIONS, *DERIVATIVES], (1, 1)),
    "atan2": (2, 2),
    "min": (1, 50),
    "max": (1, 50),
    "piecewise": (3, 49),
    "D": (2, 1 + MAX_ORDER),
}

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)"
    r"|(?P<mark>_[A-Za-z][A-Za-z0-9]*)"
    r"|(?P<symbol>\*\*|[<>=!]=|[-+*/^(),<>=])"
)


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

    def plus(self, fields: Iterable[str]) -> Scope:
        """Return the scope with further names that may carry derivatives."""
        return Scope(
            self.names | frozenset(fields), (*self.fields, *fields), self.coordinates, self.functions
        )


def parse_tree(text: str, scope: Scope) -> Node:
    """Parse an expression with a value.

    Raises `SpecificationError` naming the column, what was expected and the valid names.
    """
    return _parse(text, scope, equation=False)[0]


def parse_equation_tree(text: str, scope: Scope) -> Equation:
    """Parse `left = right`; raises `SpecificationError` like `parse_tree`."""
    left, right = _parse(text, scope, equation=True)
    return Equation(left, right)


def with_definitions(tree: Node, definitions: Mapping[str, Node], scope: Scope) -> Node:
    """Return a tree with expressions in the place of the names that are defined by them.

    `scope` is that of the tree without these names. Raises `SpecificationError` where the result is too long or breaks
    a bound of the grammar, such as that on exponents.
    """
    if not names_in(tree) & definitions.keys():
        return tree
    text = to_text(_replaced(tree, definitions, [EXPANSION * MAX_TOKENS]))
    return _parse(text, scope, equation=False, expansion=EXPANSION)[0]


def _replaced(node: Node, definitions: Mapping[str, Node], left: list[int]) -> Node:
    left[0] -= 1
    if left[0] < 0:
        raise SpecificationError(
            f"with its definitions written out it has more than {EXPANSION * MAX_TOKENS} symbols"
        )
    if isinstance(node, Name):
        found = definitions.get(node.name)
        return node if found is None else _replaced(found, {}, left)
    return with_operands(node, lambda part: _replaced(part, definitions, left))


def _parse(text: str, scope: Scope, *, equation: bool, expansion: int = 1) -> list[Node]:
    try:
        parser = _Parser(text, scope, expansion)
        sides = [parser.number(0).node]
        if equation:
            parser.expect("=", "an operator, or '=' and the right side of the equation")
            sides.append(parser.number(0).node)
        parser.expect("end", f"an operator or the end of the {'equation' if equation else 'expression'}")
    except GrammarError as error:
        raise SpecificationError(f"column {error.column} of '{clip(text)}': {error.message}") from None
    return sides


def check_syntax(
    text: str,
    names: Iterable[str] = (),
    fields: Iterable[str] = (),
    coordinates: Iterable[str] = (),
    *,
    equation: bool = False,
    derivatives: bool = False,
) -> None:
    """Raise `ValueError` for a text that is not of the grammar.

    Without `names`, `fields` or `coordinates` any name will do, where they are declared elsewhere; `derivatives` then
    says that names may carry derivative marks.
    """
    known = [*names, *fields, *coordinates]
    if not known:
        words = dict.fromkeys(re.findall(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*", text))
        heads = [word.partition("_")[0] for word in words if derivatives]
        known = [word for word in [*words, *heads] if word not in RESERVED]
    try:
        _parse(text, Scope.of(known, fields, coordinates), equation=equation)
    except SpecificationError as error:
        raise ValueError(str(error)) from None


def evaluate_tree(tree: Node, values: Mapping[str, float]) -> float:
    """Return the value of a tree without derivatives, in float arithmetic.

    Raises `SpecificationError` for a name without a value and where the result is not a finite real number.
    """
    try:
        return value_of(tree, values)
    except KeyError as error:
        name = str(error.args[0])
        known = valid_values("names", name, values)
        raise SpecificationError(f"'{clip(to_text(tree))}' needs a value of '{name}'; {known}") from None
    except (ArithmeticError, ValueError) as error:
        given = ", ".join(f"{name} = {value:g}" for name, value in values.items()) or "no values"
        shown = clip(to_text(tree))
        raise SpecificationError(f"'{shown}' has no finite real value with {given}: {error}") from None


class GrammarError(Exception):
    """A text is not of the grammar: what is wrong and at which column, counted from 1."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a name, a derivative mark such as `_xx`, a symbol (which is its own kind), or the end."""

    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"'{self.text}'"

    @property
    def after(self) -> int:
        """The column that follows the token."""
        return self.column + len(self.text)


def _tokenize(text: str, expansion: int) -> list[Token]:
    """Split a text; the last token is the end. Raises `GrammarError`."""
    longest, most = expansion * MAX_LENGTH, expansion * MAX_TOKENS
    if len(text) > longest:
        raise GrammarError(longest, f"the text is longer than {longest} characters")
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is not None:
            kind = match.group() if match.lastgroup == "symbol" else str(match.lastgroup)
            tokens.append(Token(kind, match.group(), position + 1))
        elif not text[position].isspace():
            raise GrammarError(
                position + 1,
                f"unexpected character {text[position]!r}; expected numbers, names of ASCII letters, "
                "parentheses, commas, + - * / ** and comparisons",
            )
        position = match.end() if match else position + 1
    if len(tokens) > most:
        raise GrammarError(tokens[most].column, f"the text has more than {most} symbols")
    return [*tokens, Token("end", "", len(text) + 1)]


class _Parser:
    """One pass over the tokens of a text; raises `GrammarError`."""

    def __init__(self, text: str, scope: Scope, expansion: int = 1) -> None:
        self.scope = scope
        self.tokens = _tokenize(text, expansion)
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

    def number(self, binding: int) -> _Typed:
        part = self.parse(binding)
        _require(part, "number")
        return part

    def parse(self, binding: int) -> _Typed:
        """Read the longest expression whose operators bind tighter than `binding`."""
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise GrammarError(self.token.column, f"the expression is nested more than {MAX_NESTING} deep")
        left = self.operand()
        while (op := self.operator()) is not None and PRECEDENCE[op] > binding:
            column = self.take().column
            right = self.parse(PRECEDENCE[op] - (op == "**"))
            left = _binary(op, left, right, column)
        self.nesting -= 1
        return left

    def operator(self) -> str | None:
        token = self.token
        text = "**" if token.text == "^" else token.text
        return text if text in PRECEDENCE else None

    def operand(self) -> _Typed:
        token = self.take()
        match token.kind:
            case "number":
                part = _number(token.text, token.column)
            case "name" if token.text not in ("and", "or"):
                part = self.named(token)
            case "(":
                part = self.parse(0)
                self.expect(")", "an operator or ')'")
            case "-":
                return _negative(self.parse(SIGN), token.column)
            case "+":
                return self.parse(SIGN)
            case _:
                raise GrammarError(token.column, f"expected a number, a name, '(' or a sign, found {token}")
        return self.subscripts(part)

    def subscripts(self, part: _Typed) -> _Typed:
        """Read the derivative marks that follow at once: `(u**2)_x`."""
        previous = self.tokens[self.position - 1]
        while self.token.kind == "mark" and self.token.column == previous.after:
            previous = self.take()
            by = self.coordinates(previous.text[1:], previous.column + 1)
            part = self.derivative(part, by, previous.column)
        return part

    def derivative(self, part: _Typed, by: list[str], column: int) -> _Typed:
        if isinstance(part.node, Name) and part.node.name not in self.scope.fields:
            name = part.node.name
            valid = valid_values("fields", name, self.scope.fields)
            raise GrammarError(part.column, f"'{name}' is not a field that could be differentiated; {valid}")
        return _derivative(part, by, column)

    def named(self, token: Token) -> _Typed:
        text, scope = token.text, self.scope
        if self.token.kind == "(" and scope.functions:
            return self.call(token)
        if text in scope.names:
            return _name(text, token.column)
        if text in RESERVED and scope.functions:
            raise GrammarError(token.column, f"'{text}' is a function: write {text}(…)")
        field, _, suffix = text.rpartition("_")
        if field in scope.fields:
            by = self.coordinates(suffix, token.column + len(field) + 1)
            return _derivative(_name(field, token.column), by, token.column)
        self.check_local(token)
        raise GrammarError(token.column, f"unknown name '{text}'; {valid_values('names', text, scope.names)}")

    def check_local(self, token: Token) -> None:
        """Refuse by name what depends on more than values and derivatives at a point."""
        name = token.text
        if name in _NOT_LOCAL:
            raise GrammarError(
                token.column,
                f"'{name}' is no term of a differential equation: {_NOT_LOCAL[name]}, which no method here can solve",
            )

    def call(self, token: Token) -> _Typed:
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
        return _apply(name, arguments, token.column)

    def check_callable(self, token: Token) -> None:
        name = token.text
        if name in self.scope.names:
            raise GrammarError(
                self.token.column, f"'{name}' is not a function; a product is written with '*'"
            )
        self.check_local(token)
        valid = set(_ARITY) - (set() if self.scope.coordinates else set(DERIVATIVES))
        if name not in valid:
            raise GrammarError(
                token.column, f"unknown function '{name}'; {valid_values('functions', name, valid)}"
            )

    def coordinate(self, part: _Typed) -> str:
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


@dataclass(frozen=True, slots=True)
class _Typed:
    """A tree and what the checks need to know of it; `column` is where its text begins."""

    node: Node
    column: int
    kind: _Kind = "number"
    constant: float | None = None
    power: float = 1.0


def _number(text: str, column: int) -> _Typed:
    """Build a literal: an integer where it is written without point and exponent."""
    if len(text) > MAX_DIGITS:
        raise GrammarError(column, f"a number has at most {MAX_DIGITS} digits here")
    value = int(text) if text.isdigit() else float(text)
    return _Typed(Number(value), column, constant=_constant(lambda: finite(float(value)), column))


def _name(text: str, column: int) -> _Typed:
    return _Typed(Name(text), column, constant=CONSTANTS.get(text))


def _negative(of: _Typed, column: int) -> _Typed:
    if of.kind == "condition":
        _require(of, "number")
    constant = None if of.constant is None else -of.constant
    return _Typed(Negative(of.node), column, of.kind, constant, of.power)


def _binary(op: str, left: _Typed, right: _Typed, column: int) -> _Typed:
    kind = _kind(op, left, right)
    constant, power = None, max(left.power, right.power)
    if kind == "number" and left.constant is not None and right.constant is not None:
        a, b = left.constant, right.constant
        constant = _constant(lambda: operate(op, a, b), column)
    if op == "**" and _is_laplacian(left.node) and not float(right.constant or 0.5).is_integer():
        raise GrammarError(
            column,
            "a fractional power of the Laplacian is not understood: as it is written it would be the power of its "
            "value at each point, and no method here can solve fractional equations",
        )
    if op == "**" and right.constant is not None:
        power = _bounded_power(left.power, right.constant, right.column)
    return _Typed(Binary(op, left.node, right.node), left.column, kind, constant, power)


def _is_laplacian(node: Node) -> bool:
    """Whether a node is the Laplacian, or the negative, of an expression."""
    inner = node.of if isinstance(node, Negative) else node
    return isinstance(inner, Apply) and inner.function == "lap"


def _apply(function: str, arguments: Sequence[_Typed], column: int) -> _Typed:
    _check_arguments(function, arguments)
    kind: _Kind = "vector" if function == "grad" else "number"
    constants = [argument.constant for argument in arguments]
    known = [value for value in constants if value is not None]
    constant = None
    if function in FUNCTIONS and len(known) == len(constants):
        constant = _constant(lambda: finite(FUNCTIONS[function](*known)), column)
    node = Apply(function, tuple(argument.node for argument in arguments))
    return _Typed(node, column, kind, constant, max(argument.power for argument in arguments))


def _derivative(of: _Typed, by: Sequence[str], column: int) -> _Typed:
    """Differentiate a number along coordinates; the derivatives of one expression are merged."""
    _require(of, "number")
    inner = of.node if isinstance(of.node, Derivative) else Derivative(of.node, ())
    node = Derivative(inner.of, (*inner.by, *by))
    if len(node.by) > MAX_ORDER:
        raise GrammarError(column, f"derivatives of an order above {MAX_ORDER} are not understood")
    return _Typed(node, of.column, power=of.power)


def _require(part: _Typed, kind: _Kind) -> None:
    if part.kind != kind:
        hint = "; join comparisons with 'and'" if part.kind == "condition" else ""
        raise GrammarError(part.column, f"expected a {kind}, found a {part.kind}{hint}")


def _kind(op: str, left: _Typed, right: _Typed) -> _Kind:
    wanted: _Kind = "condition" if op in ("and", "or") else "number"
    if op in "+-" and "vector" in (left.kind, right.kind):
        wanted = "vector"
    elif op in "*/" and left.kind == "vector":
        _require(right, "number")
        return "vector"
    elif op == "*" and right.kind == "vector":
        _require(left, "number")
        return "vector"
    _require(left, wanted)
    _require(right, wanted)
    return "condition" if op in COMPARISONS else wanted


def _check_arguments(function: str, arguments: Sequence[_Typed]) -> None:
    for index, argument in enumerate(arguments):
        if function == "piecewise" and index % 2 == 1 and index < len(arguments) - 1:
            _require(argument, "condition")
            if any(isinstance(part, Apply) and part.function == "piecewise" for part in walk(argument.node)):
                raise GrammarError(argument.column, "expected a condition without another piecewise in it")
        else:
            _require(argument, "vector" if function == "div" else "number")


def _bounded_power(inner: float, exponent: float, column: int) -> float:
    if abs(exponent) > MAX_EXPONENT:
        raise GrammarError(column, f"exponents are at most {MAX_EXPONENT} in size here, found {exponent:g}")
    total = inner * max(1.0, abs(exponent))
    if total > MAX_TOTAL_EXPONENT:
        raise GrammarError(column, f"nested exponents multiply to more than {MAX_TOTAL_EXPONENT}")
    return total


def _constant(value: Callable[[], float], column: int) -> float:
    try:
        return value()
    except ZeroDivisionError:
        raise GrammarError(column, "division by zero") from None
    except (ArithmeticError, ValueError):
        raise GrammarError(column, "this constant is not a finite real number in floating point") from None
