"""Complete functions and classes in place of those that a program has: what models give where little changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sharp.llm.replies_text import parses

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def are_definitions(code: str) -> bool:
    """Say whether a text is Python that defines functions or classes, and beside these only constants and imports."""
    if not parses(code):
        return False
    body = ast.parse(code).body
    allowed = (*_DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    return any(isinstance(one, _DEFINITIONS) for one in body) and all(
        isinstance(one, allowed) or _is_docstring(one) for one in body
    )


def with_definitions(base: str, part: str) -> str | None:
    """Return a program in which the definitions of `part` stand in place of those of the same names.

    What is new stands before the first of them, and imports come first. None where either text is no Python, or where
    the program has none of the functions.
    """
    if not parses(base) or not are_definitions(part):
        return None
    lines, known = base.split("\n"), {name: node for node in ast.parse(base).body for name in _names(node)}
    replaced: dict[int, tuple[int, str]] = {}
    imports, new = list[str](), list[str]()
    for node in ast.parse(part).body:
        text = "\n".join(part.split("\n")[_first(node) : node.end_lineno])
        own = next((known[name] for name in _names(node) if name in known), None)
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += [text] if text not in lines else []
        elif own is not None:
            replaced[_first(own)] = (own.end_lineno or 0, text)
        elif not _is_docstring(node):
            new.append(text)
    if not any(isinstance(node, _DEFINITIONS) and _first(node) in replaced for node in known.values()):
        return None
    first = min(
        _first(node) for node in known.values() if isinstance(node, _DEFINITIONS) and _first(node) in replaced
    )
    for start, (stop, text) in sorted(replaced.items(), reverse=True):
        ahead = [f"{each}\n\n" for each in new] if start == first else []
        lines[start:stop] = "\n".join([*ahead, text]).split("\n")
    at = _end_of_preamble(base)
    return "\n".join([*lines[:at], *imports, *lines[at:]])


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, _DEFINITIONS):
        yield node.name
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    yield from (target.id for target in targets if isinstance(target, ast.Name))


def _first(node: ast.stmt) -> int:
    """Return the number of a statement's first line from 0, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)]) - 1


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _end_of_preamble(base: str) -> int:
    """Return how many lines the docstring and the imports that a program begins with take."""
    stop = 0
    for node in ast.parse(base).body:
        if not isinstance(node, ast.Import | ast.ImportFrom) and not _is_docstring(node):
            break
        stop = node.end_lineno or 0
    return stop
