"""The program of a reply, however it is wrapped: fenced or bare, split over blocks, drafted twice, numbered, in JSON.

A program is read where its meaning is certain. What is left out of it ("# ... rest unchanged") cannot be known, and is
refused with the lines that say so. Nothing is ever executed.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import symtable
import tokenize
from collections.abc import Iterable, Iterator, Sequence

from sharp.errors import ReplyError
from sharp.llm.replies_json import last_object
from sharp.llm.replies_text import (
    Block,
    answer,
    defines,
    fenced_blocks,
    parses,
    plain_quotes,
    symbols_of,
    without_line_numbers,
)

# Names that a module has without binding them.
_GIVEN = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"}
_JSON = frozenset({"json", "json5", "jsonc"})
# What a comment says in the place of code. Each names code, so that a remark on physics is none of them.
_PLACE = (
    r"(?:code|functions?|methods?|program|implementation|file|module|class|solver|loop|body|script|helpers?|logic"
    r"|imports?)"
)
_OF_IT = r"\b(?:rest|remainder) of (?:the |your |this |my )?(?:\w+ )?"
_KNOWN = r"\b(?:existing|previous|original|remaining|other|earlier|same) (?:\w+ )?"
_LEFT = r"\b.*\b(?:here|unchanged|as before|above|omitted|goes?|remains?|stays?)\b"
_SAID = re.compile(
    rf"{_OF_IT}{_PLACE}\b|{_KNOWN}{_PLACE}{_LEFT}"
    rf"|\b{_PLACE}\b.*\b(?:remains?|stays?|is|are) (?:unchanged|the same|as before|identical)\b"
    rf"|\b(?:your|actual|full|complete) {_PLACE}(?: goes)? here\b|\bimplement(?:ation)? (?:this|me|here)\b"
    r"|\bomitted for (?:brevity|clarity|space)\b|\b(?:unchanged|as) from (?:the )?(?:base|above|before|previous)\b",
    re.IGNORECASE,
)
# With dots, fewer words are needed: "# ... unchanged ...", "# … same as above".
_DOTS = re.compile(r"\.\.\.|…")
_SAID_WITH_DOTS = re.compile(
    r"\b(?:rest|remain\w*|unchanged|same|existing|previous|omitted|as before|above|code|here|continue\w*|etc)\b",
    re.IGNORECASE,
)
_ONLY_DOTS = re.compile(r"#[\s\[(<]*(?:\.\.\.|…)[\s\])>]*")
_FENCED = "Give the complete program in one fenced ```python block"


def extract_code(text: str, function: str = "solver") -> str:
    """Return the program of a reply: the last of its Python blocks that parses and defines `function`.

    Blocks before it that bind names which it lacks are put in front of it. Without such a block, a program without a
    fence or in a string of a JSON object is taken. Where none parses, the longest that defines `function` is returned:
    its syntax error is the program's. Raises `ReplyError` for a reply without a program, and for one that leaves out
    code.
    """
    reply = answer(text)
    blocks = [block for block in fenced_blocks(reply) if block.is_python]
    bodies = [_mended(block.body) for block in blocks]
    complete = [number for number, body in enumerate(bodies) if defines(body, function)]
    if complete:
        written = [number for number in complete if not _only_imports(bodies[number], function)]
        last = (written or complete)[-1]
        return _whole(_joined(bodies[:last], bodies[last]), function)
    unmarked = _bare(reply, function) or _in_json(reply, function)
    if unmarked:
        return _whole(unmarked, function)
    drafts = [body for body in bodies if mentions(body, function)]
    _refuse_cut(block for block in blocks if not block.closed and block.body.strip())
    if not drafts:
        found = (
            f"None of its {len(blocks)} code blocks defines"
            if blocks
            else "It has no code block that defines"
        )
        raise ReplyError(
            f"The reply holds no program. {found} `{function}` at top level. "
            f"Expected one complete module with `{function}` in a fenced ```python block."
        )
    return _whole(max(drafts, key=len), function)


def mentions(code: str, function: str) -> bool:
    """Say whether a text, valid Python or not, has a line that defines or assigns `function`."""
    name = re.escape(function)
    return re.search(rf"^(?:[ \t]*+(?:async )?def {name}\b|{name} *=)", code, re.MULTILINE) is not None


def elisions(code: str) -> tuple[tuple[int, str], ...]:
    """Return where a program says that code is left out: lines, from 1, and their texts.

    These are comments such as "# ... rest of the loop unchanged" on lines of their own, and `...` as a statement of a
    function that does nothing else.
    """
    found = dict(_elided_comments(code))
    found.update(_stub_bodies(code))
    return tuple(sorted(found.items()))


def elided_text(places: Sequence[tuple[int, str]]) -> str:
    """Return in a sentence which lines of a program stand for code that is left out."""
    shown = "; ".join(f"line {line}: {text.strip()[:80]!r}" for line, text in places[:5])
    return f"The program leaves out code ({shown})"


def _whole(code: str, function: str) -> str:
    """Return a program with one newline at its end; raises `ReplyError` where it is only a part of one."""
    places = elisions(code)
    if places:
        raise ReplyError(
            f"{elided_text(places)}, and what belongs there is not known. {_FENCED}, with nothing left out."
        )
    if stub := _stub(code, function):
        raise ReplyError(f"`{function}` {stub}. {_FENCED}, with the method worked out.")
    return code.strip("\n") + "\n"


def _refuse_cut(blocks: Iterable[Block]) -> None:
    for block in blocks:
        raise ReplyError(
            f"The reply ended inside the code block that begins at its line {block.fence.line + 1}. "
            f"{_FENCED}, shorter if need be."
        )


def _mended(body: str) -> str:
    """Return a block's text without line numbers and typographic quotes, where it is Python only then."""
    if parses(body):
        return body
    for repaired in (
        without_line_numbers(body),
        plain_quotes(body),
        plain_quotes(without_line_numbers(body)),
    ):
        if repaired != body and parses(repaired):
            return repaired
    return body


def _only_imports(code: str, function: str) -> bool:
    """Whether a program has `function` from elsewhere: an example of its use."""
    symbols = symbols_of(code)
    return isinstance(symbols, symtable.SymbolTable) and not symbols.lookup(function).is_assigned()


def _joined(before: Sequence[str], last: str) -> str:
    """Return a program with the earlier blocks in front of it that bind the names which it lacks.

    Later blocks replace what earlier ones bind, as in a session: a block that repeats one function after the whole
    program was given stands for the program with that function replaced.
    """
    parts, lacking = [last], _free_names(last)
    for body in reversed(before):
        bound = {name for name in lacking if defines(body, name)}
        if bound:
            parts.insert(0, body)
            lacking = (lacking - bound) | _free_names(body)
    return "\n\n".join(part.strip("\n") for part in parts) + "\n" if len(parts) > 1 else last


def _free_names(code: str) -> set[str]:
    """Return the global names that a module uses and does not bind."""
    top = symbols_of(code)
    if not isinstance(top, symtable.SymbolTable) or _imports_everything(code):
        return set()
    bound = {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    tables, used = [top], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global() and symbol.is_assigned():
                bound.add(symbol.get_name())
            if symbol.is_referenced() and (table is top or symbol.is_global()):
                used.add(symbol.get_name())
    return used - bound - _GIVEN


def _imports_everything(code: str) -> bool:
    return re.search(r"^from [\w.]+ import \*", code, re.MULTILINE) is not None


def _bare(reply: str, function: str) -> str | None:
    """Return the program of a reply without fences: from its first line of code to its last."""
    lines = reply.split("\n")
    starts = (
        n for n, line in enumerate(lines) if re.match(r"(?:import |from \w|def |class |@|\"\"\"|'''|#)", line)
    )
    for start in list(starts)[:8]:
        # Prose after the program is left out line by line, by paragraphs first: compiling a text is cheap.
        ends = [len(lines)] + [n for n in range(len(lines) - 1, start, -1) if not lines[n].strip()]
        for end in ends[:40]:
            code = _mended("\n".join(lines[start:end]) + "\n")
            if defines(code, function):
                return code
    return None


def _in_json(reply: str, function: str) -> str | None:
    """Return the program that is a string of the reply's JSON object, whatever its key."""
    texts = [block.body for block in fenced_blocks(reply) if block.fence.language in _JSON] or [reply]
    try:
        found = last_object(texts[-1], prose=texts[-1] is reply)
    except ReplyError:
        return None
    programs = [
        value for value in (found or {}).values() if isinstance(value, str) and defines(value, function)
    ]
    return programs[0] if len(programs) == 1 else None


def _elided_comments(code: str) -> Iterator[tuple[int, str]]:
    for line, text in _comments(code):
        dotted = _DOTS.search(text) is not None
        if _SAID.search(text) or _ONLY_DOTS.fullmatch(text) or (dotted and _SAID_WITH_DOTS.search(text)):
            yield line, text


def _comments(code: str) -> Iterator[tuple[int, str]]:
    """Yield the comments that stand alone on their lines, by line from 1; without those inside strings."""
    lines = code.split("\n")
    try:
        tokens = [
            token
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
            if token.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, SyntaxError):
        yield from ((n, line.strip()) for n, line in enumerate(lines, 1) if line.lstrip().startswith("#"))
        return
    yield from (
        (token.start[0], token.string) for token in tokens if token.line[: token.start[1]].strip() == ""
    )


def _stub_bodies(code: str) -> Iterator[tuple[int, str]]:
    """Yield the places where `...` is the whole body of a function."""
    for function in _functions(code):
        body = _without_docstring(function)
        if body and all(_is_ellipsis(statement) for statement in body) and not _is_abstract(function):
            yield body[0].lineno, f"... in `{function.name}`"


def _stub(code: str, function: str) -> str:
    """Return in words why `function` computes nothing; an empty text where it may."""
    for found in _functions(code):
        if found.name != function:
            continue
        body = _without_docstring(found)
        if all(isinstance(statement, ast.Pass) for statement in body):
            return "does nothing"
        if len(body) == 1 and isinstance(body[0], ast.Raise) and isinstance(body[0].exc, ast.Name):
            return f"only raises {body[0].exc.id}, and does not say why"
    return ""


def _functions(code: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    if not parses(code):
        return
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    first = function.body[0]
    documented = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return function.body[1:] if documented else function.body


def _is_ellipsis(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is ...
    )


def _is_abstract(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a body of dots is how one writes it: an overload or an abstract method."""
    return any(
        "overload" in ast.dump(decorator) or "abstract" in ast.dump(decorator)
        for decorator in function.decorator_list
    )
