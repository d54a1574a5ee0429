"""The strategy of a program, read from its syntax tree: what it does, not what it says of itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from sharp.evaluation.code import remove_docstrings, syntax_tree
from sharp.llm import Strategy

_TRANSFORM = re.compile(
    r"cole_?hopf|hopf_?cole|(^|_)hopf(_|$)|hodograph|kirchhoff|conformal|moving_frame|co_?moving|boost(ed)?_frame"
)
_EXACT = re.compile(
    r"(^|_)(exact|analytic(al)?|closed_form|logistic_(step|flow|map|solution)|integrating_factor|duhamel|etd\w*"
    r"|semi_?lagrang\w*|characteristics?|feet|departures?|phi_?[123])(_|$)"
)
_NOT_EXACT = re.compile(r"riemann|error|speed|fields?$")
_DURATION = re.compile(r"(^|_)(dt|dts|tau|delta_?t|time_?step|interval|duration|elapsed)(_|$)|^(t|times?)$")
_VISCOSITY = re.compile(r"^(nu|viscosity|visc|mu|diffusivity|nu_eff)$")
_PROPAGATORS = frozenset({"exp", "expm", "expm1", "expm_multiply", "phiv"})
_DIFFERENCE = (ast.Mult, ast.Div, ast.Pow)
_INTEGRATORS = frozenset(
    {"solve_ivp", "odeint", "odeint_adjoint", "diffeqsolve", "ode", "fori_loop", "while_loop", "scan"}
)
_SOLVES = re.compile(
    r"(^|_)(solve\w*|spsolve|splu|spilu|factorized|cg|bicg\w*|gmres|minres|lu_?(factor|solve)?|cho_solve|inv|lstsq|newton\w*|root|fsolve"
    r"|jacobi|gauss_?seidel|multigrid|v_?cycle|relax\w*|sor|thomas\w*|tridiag\w*)$"
)
_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NEIGHBOURS = frozenset({"roll", "diff", "gradient", "convolve", "conv1d", "pad", "ediff1d"})
_STEP = re.compile(r"(^|_)(dt|tau|delta_?t|time_?step)(_|$)")


@lru_cache(maxsize=1024)
def strategy_of(source: str) -> Strategy:
    """Return the strategy of a program by what its text does (the paper's Figures 4a, 17 and 18 count these).

    `transformed`: it names a change of variables (Cole-Hopf, Kirchhoff, hodograph, …), or takes exponentials of
    something over twice the viscosity. `analytical`: nothing is carried from step to step, integrated or solved for, or
    one exact propagator does every step. `hybrid`: steps, of which a part is exact: an exponential of a time step, or a
    part that is named for what it is (integrating factor, characteristics, …). `numerical`: all else, and what does not
    parse. Docstrings and comments do not count.
    """
    tree = syntax_tree(source)
    if tree is None:
        return "numerical"
    remove_docstrings(tree)
    names = set(_identifiers(tree))
    called = {name for node in ast.walk(tree) if isinstance(node, ast.Call) for name in [_last(node.func)]}
    if any(map(_TRANSFORM.search, names)) or _is_hopf(tree, called):
        return "transformed"
    steps = bool(called & _INTEGRATORS) or any(_carries_state(loop) for loop in _loops(tree))
    if not steps and not any(map(_SOLVES.search, called)):
        computes = any(isinstance(node, ast.BinOp) for node in ast.walk(tree))
        return "analytical" if computes else "numerical"
    if not steps:
        return "numerical"
    durations = _durations(tree)
    exact = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and _propagates(node, durations)]
    if len(exact) == 1 and _stands_alone(tree, exact[0]) and not _differs(tree, called):
        return "analytical"
    named = any(_EXACT.search(name) and not _NOT_EXACT.search(name) for name in names)
    return "hybrid" if exact or named else "numerical"


def _identifiers(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a program defines or calls, in lower case with words apart."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield _words(node.name)
        elif isinstance(node, ast.Name):
            yield _words(node.id)
        elif isinstance(node, ast.arg):
            yield _words(node.arg)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _last(node: ast.expr) -> str:
    """Return the last part of a dotted name; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _loops(tree: ast.Module) -> Iterator[ast.For | ast.While]:
    yield from (node for node in ast.walk(tree) if isinstance(node, _LOOPS))


def _carries_state(loop: ast.For | ast.While) -> bool:
    """Whether a turn of a loop computes an array from what the turn before has left in it.

    Sums (`total = total + x`, `x += y` with anything) are series as often as steps, and do not count; nor do counters.
    """
    for node in _assigned_in(loop):
        targets = {ast.unparse(_array(part)) for target in node.targets for part in _parts(target)}
        called = [each for each in ast.walk(node.value) if isinstance(each, ast.Call)]
        given = (argument for call in called for argument in call.args if _last(call.func) not in _BOUNDS)
        if any(_reads(argument, targets) for argument in given):
            return True
        terms = _terms(node.value)
        if any(_reads(term, targets) for term in terms) and any(
            _DURATION.search(n) for n in _names(node.value)
        ):
            return True
    return False


_BOUNDS = frozenset({"min", "max", "minimum", "maximum", "abs", "len", "int", "float", "range"})


def _assigned_in(loop: ast.For | ast.While) -> Iterator[ast.Assign]:
    yield from (node for node in ast.walk(loop) if isinstance(node, ast.Assign))


def _parts(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]


def _array(node: ast.expr) -> ast.expr:
    """Return the array of which an expression takes a part."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _reads(node: ast.expr, arrays: set[str]) -> bool:
    return any(
        ast.unparse(each) in arrays for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)
    )


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _names(node: ast.AST) -> Iterator[str]:
    yield from (_words(each.id) for each in ast.walk(node) if isinstance(each, ast.Name))


def _durations(tree: ast.Module) -> set[str]:
    """Return the names of time steps, also of those where a product with one has a name of its own."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    durations = {name for name in map(_words, used) if _DURATION.search(name)}
    products = [
        (_words(target.id), {*_names(node.value)})
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_product(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    for _ in products:
        durations |= {name for name, read in products if read & durations}
    return durations


def _propagates(function: ast.AST, durations: set[str]) -> bool:
    """Whether a function takes an exponential of a time step."""
    exponents = (
        argument
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and _last(node.func) in _PROPAGATORS
        for argument in node.args
    )
    return any(durations & {*_names(argument)} for argument in exponents)


def _stands_alone(tree: ast.Module, propagator: ast.AST) -> bool:
    """Whether an exact step calls no other function of the program, and no other function takes a time step."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    others = (node for node in functions.values() if node is not propagator)
    stepping = (arg.arg for node in others if not _calls(node, propagator) for arg in node.args.args)
    own = {_last(node.func) for node in ast.walk(propagator) if isinstance(node, ast.Call)}
    return not own & functions.keys() and not any(map(_STEP.search, stepping))


def _calls(node: ast.FunctionDef, function: ast.AST) -> bool:
    name = getattr(function, "name", "")
    return any(isinstance(each, ast.Call) and _last(each.func) == name for each in ast.walk(node))


def _differs(tree: ast.Module, called: set[str]) -> bool:
    """Whether neighbours are read, rates are added up over a step, or equations are solved."""
    if called & _NEIGHBOURS or any(map(_SOLVES.search, called)):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            sides = (node.left, node.right)
            if all(isinstance(side, ast.Subscript) and _is_sliced(side) for side in sides):
                return True
            if any(_is_product(side) and any(map(_STEP.search, _names(side))) for side in sides):
                return True
    return False


def _is_sliced(node: ast.Subscript) -> bool:
    return any(
        isinstance(each, ast.Slice) and (each.lower is not None or each.upper is not None)
        for each in ast.walk(node.slice)
    )


def _is_product(node: ast.expr) -> bool:
    """Whether an expression is a product, quotient or power, with or without a sign."""
    if isinstance(node, ast.UnaryOp):
        return _is_product(node.operand)
    return isinstance(node, ast.BinOp) and isinstance(node.op, _DIFFERENCE)


def _is_hopf(tree: ast.Module, called: set[str]) -> bool:
    """Whether exponentials are taken in a program that divides by twice the viscosity, as Cole and Hopf do."""
    twice = (
        node.right
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.BinOp)
    )
    return "exp" in called and any(
        isinstance(right.op, ast.Mult)
        and ast.unparse(right.left) in ("2", "2.0")
        and isinstance(right.right, ast.Name)
        and bool(_VISCOSITY.search(_words(right.right.id)))
        for right in twice
    )
