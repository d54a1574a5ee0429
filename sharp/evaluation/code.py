"""What can be said of a solver's source without running it."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from sharp.evaluation.names import called_modules, imports

_LIBRARIES = {"jax": "JAX", "numpy": "NumPy", "scipy": "SciPy", "torch": "PyTorch"}
# Deeper trees are left alone: what walks through them by recursion would fail, depending on who calls it.
_DEEPEST = 100
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_QUIET = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


@dataclass(frozen=True)
class LineCounts:
    """Lines of a source: all, with code, with nothing but comment or docstring; the others are blank."""

    total: int
    code: int
    comment: int


@lru_cache(maxsize=1024)
def canonical_hash(source: str) -> str:
    """Return a SHA-256 that ignores docstrings, comments and formatting but not names.

    Code that does not parse, or is nested very deep, is hashed as it stands but for white space at ends of lines.
    """
    tree = _parse(source)
    if tree is None:
        text = "\n".join(line.rstrip() for line in source.strip().splitlines())
    else:
        text = ast.unparse(_without_docstrings(tree))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def library_shares(source: str) -> dict[str, float]:
    """Return the share of each numerical library in the calls made to such libraries (paper section 4.2).

    A call counts for the root module that its name leads to (see `called_modules`), so `jax.numpy` and `jax.scipy`
    are JAX. The shares add up to one; the result is empty where no such call is made or the code does not parse.
    """
    tree = _parse(source)
    called = [] if tree is None else called_modules(tree)
    counts = Counter(_LIBRARIES[root] for root in called if root in _LIBRARIES)
    return {library: count / counts.total() for library, count in sorted(counts.items())}


def libraries_imported(source: str) -> tuple[str, ...]:
    """Return the numerical libraries that a source imports, sorted; empty where it does not parse."""
    return tuple(sorted(_LIBRARIES[root] for root in modules_imported(source) if root in _LIBRARIES))


@lru_cache(maxsize=1024)
def modules_imported(source: str) -> frozenset[str]:
    """Return the root modules that a source imports; empty where it does not parse."""
    tree = _parse(source)
    if tree is None:
        return frozenset()
    return frozenset(root for node in ast.walk(tree) for root in imports(node).values())


def line_counts(source: str) -> LineCounts:
    """Count the lines of a source; without parsing, all that is not blank is code."""
    lines = source.splitlines()
    blank = {number for number, line in enumerate(lines, start=1) if not line.strip()}
    tree = _parse(source)
    if tree is None:
        return LineCounts(len(lines), len(lines) - len(blank), 0)
    text = _docstring_lines(tree)
    code = _code_lines(source) - text
    blank -= code | text
    return LineCounts(len(lines), len(code), len(lines) - len(code) - len(blank))


def _parse(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escapes: the candidate's own business
        try:
            tree = ast.parse(source)
        except _UNPARSABLE:
            return None
    return tree if _depth(tree) <= _DEEPEST else None


def _depth(tree: ast.Module) -> int:
    """Return how many levels of nodes are below the module."""
    depth, level = 0, [*ast.iter_child_nodes(tree)]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _docstring(node: ast.AST) -> ast.Expr | None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str())) as first, *_]:
                return first
    return None


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (docstring := _docstring(node)) is not None:
            assert isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            node.body.remove(docstring)
            node.body = node.body or [ast.Pass()]
    return tree


def _docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for docstring in filter(None, map(_docstring, ast.walk(tree))):
        found.update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return found


def _code_lines(source: str) -> set[int]:
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _QUIET:
            found.update(range(token.start[0], token.end[0] + 1))
    return found
