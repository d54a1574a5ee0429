"""Tools that sessions build: functions of programs that ran, which later programs import from the module `tools`.

A tool is the source of one function with all that it needs of its module. What is left of a program's imports of tools
when it runs is one expression on the same line, so that lines keep their numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

Library = Mapping[str, str]
"""Sources of tools by name, the one that was used or built last at the end."""

MODULE = "tools"
MOST_TOOLS = 32
LONGEST_TOOL = 20_000
"""Characters of a tool's source; a longer one is not kept."""


def grown(library: Library, used: Collection[str], built: Library) -> dict[str, str]:
    """Return a library after a session: what it used and built comes last, and the first go beyond `MOST_TOOLS`."""
    moved = {**{name: library[name] for name in used if name in library}, **built}
    kept = {**{name: source for name, source in library.items() if name not in moved}, **moved}
    return dict(list(kept.items())[-MOST_TOOLS:])


def tools_imported(code: str, library: Library) -> tuple[str, ...]:
    """Return the names that a program imports from `tools`, all of a library for `import tools`."""
    names: dict[str, None] = {}
    for node in _imports_of_tools(code):
        whole = isinstance(node, ast.Import) or any(alias.name == "*" for alias in node.names)
        names |= dict.fromkeys(library if whole else (alias.name for alias in node.names))
    return tuple(names)


def with_tools(code: str, tools: Library) -> str:
    """Return a program in which each import of `tools` finds these."""
    space = f"{{_name: (exec(_source, _space := {{}}) or _space[_name]) for _name, _source in {dict(tools)!r}.items()}}"
    module = f'__import__("sys").modules["{MODULE}"] = __import__("types").SimpleNamespace(**{space}); '
    lines = code.encode().splitlines(keepends=True)
    for node in sorted(
        _imports_of_tools(code), key=lambda node: (node.lineno, node.col_offset), reverse=True
    ):
        line, place = lines[node.lineno - 1], node.col_offset
        lines[node.lineno - 1] = line[:place] + module.encode() + line[place:]
    return b"".join(lines).decode()


def tools_built(code: str, names: Collection[str], tools: Library) -> dict[str, str]:
    """Return the functions of a program with these names as tools; what is no function of its top level is left out.

    `tools` are those that the program imports itself.
    """
    statements = [(node, _bound(node), _read(node)) for node in _parsed(code)]
    functions = {node.name for node, *_ in statements if isinstance(node, ast.FunctionDef)}
    found = {}
    for name in dict.fromkeys(names):
        if name not in functions:
            continue
        needed, wanted = set[int](), {name}
        while wanted:
            more = {i for i, (_, bound, _) in enumerate(statements) if bound & wanted} - needed
            needed |= more
            wanted = {read for i in more for read in statements[i][2]}
        source = "\n\n".join(_source(code, statements[i][0]) for i in sorted(needed)) + "\n"
        source = with_tools(
            source, {each: tools[each] for each in tools_imported(source, tools) if each in tools}
        )
        if len(source) <= LONGEST_TOOL:
            found[name] = source
    return found


def signature(name: str, source: str) -> str:
    """Return the head of a tool's function with the first paragraph of its docstring, as prompts show it."""
    function = next(
        node for node in _parsed(source) if isinstance(node, ast.FunctionDef) and node.name == name
    )
    told = (ast.get_docstring(function) or "").partition("\n\n")[0]
    head = f"def {name}({ast.unparse(function.args)}):"
    return f'{head}\n    """{" ".join(told.split())}"""' if told else head


def _parsed(code: str) -> list[ast.stmt]:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError):
        return []


def _imports_of_tools(code: str) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in (inner for statement in _parsed(code) for inner in ast.walk(statement)):
        if (isinstance(node, ast.ImportFrom) and node.module == MODULE and not node.level) or (
            isinstance(node, ast.Import) and any(alias.name == MODULE for alias in node.names)
        ):
            yield node


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement of the top level binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    inner = list(ast.walk(node))
    stored = {each.id for each in inner if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    aliases = (
        alias for each in inner if isinstance(each, ast.Import | ast.ImportFrom) for alias in each.names
    )
    return stored | {(alias.asname or alias.name).partition(".")[0] for alias in aliases}


def _read(node: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _source(code: str, node: ast.stmt) -> str:
    """Return the lines of a statement of the top level, decorators included."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return "\n".join(code.splitlines()[first - 1 : node.end_lineno])
