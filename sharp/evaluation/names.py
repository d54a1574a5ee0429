"""Which modules the calls in a program lead to: names followed from imports through aliases and scopes."""

from __future__ import annotations

import ast
from collections import ChainMap, deque
from collections.abc import Iterable, Sequence

Names = ChainMap[str, str | None]


def called_modules(tree: ast.Module) -> list[str]:
    """Return the root module of every call of something imported; a decorator is a call.

    Whatever is found in a module by a chain of attributes counts for it, also under another name: after
    `from jax import numpy as jnp` and `fft = jnp.fft.fft`, `fft(u)` is a call of jax. Methods of what a call returned
    do not count, nor do parameters and variables named as a module is.
    """
    return _Calls(tree).modules


def imports(node: ast.AST) -> dict[str, str]:
    """Return `{name: root module}` for the names that a statement binds by an absolute import."""
    if isinstance(node, ast.Import):
        roots = ((alias.asname, alias.name.partition(".")[0]) for alias in node.names)
        return {name or root: root for name, root in roots}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        root = node.module.partition(".")[0]
        return {alias.asname or alias.name: root for alias in node.names}
    return {}


class _Calls(ast.NodeVisitor):
    """Follows names in the order of execution: bodies of functions come after the scope that they are defined in."""

    def __init__(self, tree: ast.Module) -> None:
        self.modules: list[str] = []
        self._names: Names = ChainMap()
        self._later: deque[tuple[Sequence[ast.AST], Names]] = deque([(tree.body, self._names)])
        while self._later:
            body, self._names = self._later.popleft()
            self._visit_all(body)

    def visit_Call(self, node: ast.Call) -> None:
        self._count(node.func)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self._names.update(imports(node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._names.update(imports(node))

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._names[node.id] = None

    def visit_Try(self, node: ast.Try) -> None:
        # Handlers first: where they import a substitute, the body has the last word.
        self._visit_all((*node.handlers, *node.body, *node.orelse, *node.finalbody))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call):
                self._count(decorator)
        self._names[node.name] = None
        self._visit_all(node.decorator_list)
        self._postpone(node.args, node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._postpone(node.args, [node.body])

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _postpone(self, arguments: ast.arguments, body: Sequence[ast.AST]) -> None:
        self.visit(arguments)  # defaults are computed here
        own: dict[str, str | None] = {
            node.arg: None for node in ast.walk(arguments) if isinstance(node, ast.arg)
        }
        self._later.append((body, self._names.new_child(own)))

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = self._root(value)
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            for part, its_value in zip(target.elts, value.elts, strict=True):
                self._bind(part, its_value)
        else:
            self.visit(target)

    def _count(self, function: ast.expr) -> None:
        if (root := self._root(function)) is not None:
            self.modules.append(root)

    def _root(self, node: ast.expr) -> str | None:
        """Return the root module that a name or a chain of attributes begins in."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return self._names.get(node.id) if isinstance(node, ast.Name) else None
