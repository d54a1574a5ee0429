"""The program of a reply, however it is wrapped: fenced or bare, split over blocks, drafted twice, numbered, in JSON.

A program is read where its meaning is certain. What is left out of it ("# ... rest unchanged") cannot be known, and is
refused with the lines that say so. Nothing is ever executed.
"""

from __future__ import annotations

import ast
import builtins
import html
import io
import re
import symtable
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from sharp.errors import ReplyError
from sharp.llm.replies_calls import texts_in
from sharp.llm.replies_json import last_object
from sharp.llm.replies_text import (
    FencedBlock,
    answer,
    defines,
    fenced_blocks,
    parses,
    plain_quotes,
    symbols_of,
    without_blocks,
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
_OTHER = (
    r"(?:the )?(?:(?:previous|earlier|original|base) (?:program|version|solver|code|answer)|base|original|candidate"
    r"|c\d{3}|h\d+\.\d)"
)
_LEFT = r"\b.*\b(?:here|unchanged|as before|above|omitted|goes?|remains?|stays?)\b"
_SAID = re.compile(
    rf"{_OF_IT}{_PLACE}\b|{_KNOWN}{_PLACE}{_LEFT}|\b{_PLACE}\b.*\b(?:as in|from) {_OTHER}"
    rf"|\b{_PLACE}\b.*\b(?:remains?|stays?|is|are) (?:unchanged|the same|as before|identical)\b"
    rf"|\b(?:your|actual|full|complete) {_PLACE}(?: goes)? here\b|\bimplement(?:ation)? (?:this|me|here)\b"
    rf"|\b(?:TODO|FIXME)\b.*\b(?:implement|complete|fill in|write)\b|\b(?:same|unchanged|as) (?:as in|from) {_OTHER}"
    r"|\bomitted for (?:brevity|clarity|space)\b"
    r"|^#\W*(?:omitted|(?:(?:remains?|left|stays?) )?unchanged|(?:(?:the )?same )?as (?:before|above))\W*$"
    # The same in Chinese, French, German and Spanish.
    r"|省略\s*(?:[:：。.…(（]|$|代码|循环|函数|实现)|(?:代码|函数|程序|循环|实现|其余部分).*(?:不变|相同|同上|省略|略$)"
    r"|\b(?:reste|suite) du (?:code|programme|module)\b|\bRest des (?:Codes|Programms|Moduls)\b"
    r"|\bresto del (?:código|programa|módulo)\b"
    r"|\b(?:code|fonctions?|programme|boucle|Funktion(?:en)?|Programm|Schleife|código|función|funciones|programa|bucle)\b"
    r".*\b(?:inchangée?s?|omise?s?|comme avant|unverändert|wie (?:zuvor|oben|bisher)|sin cambios|igual que antes)\b"
    r"|^#\W*(?:inchangée?s?|comme avant|unverändert|wie (?:zuvor|oben|bisher)|sin cambios|igual que antes)\W*$",
    re.IGNORECASE,
)
# With dots, fewer words are needed: "# ... unchanged ...", "# … same as above".
_DOTS = re.compile(r"\.\.\.|…")
_SAID_WITH_DOTS = re.compile(
    r"\b(?:rest|remain\w*|unchanged|same|existing|previous|omitted|as before|above|code|here|continue\w*|etc)\b",
    re.IGNORECASE,
)
_DOTS_FIRST = re.compile(r"#[\s\[(<]*(?:\.\.\.|…)")
_FILLER = re.compile(r"\s*(?:pass|\.\.\.)\s*\Z")
_SAID_BY_FILLER = re.compile(
    r"\b(?:same|unchanged|as (?:before|above|in)|omitted|existing|previous|TODO)\b", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,5});")
_CODE_LINE = re.compile(
    r"\s|(?:def|class|import|from|if|for|while|with|try|return|async) ?\b|@\w|[\w.\[\]]+ *(?:=|\+=|\()|[\])}]"
)
_TO_BE_WRITTEN = re.compile(r"\A\W*\Z|\b(?:here|fill|todo|implement\w*|later|your|template)\b", re.IGNORECASE)
_MOST_STARTS, _MOST_ENDS = 8, 40
_DIFF_HEADERS = ("--- ", "+++ ", "@@ ", "diff --git ", "new file mode ", "index ")
_FENCED = "Give the complete program in one fenced ```python block"


def extract_code(text: str, function: str = "solver") -> str:
    """Return the program of a reply: the last of its Python blocks that parses and defines `function`.

    Blocks before it that bind names which it lacks are put in front of it. Without such a block, a program without a
    fence or in a string of a JSON object is taken. Where none parses, the longest that defines `function` is returned:
    its syntax error is the program's. Raises `ReplyError` for a reply without a program, and for one that leaves out
    code.
    """
    reply = answer(text)
    fenced = tuple(_new_file(block) for block in fenced_blocks(reply))
    blocks = [block for block in fenced if block.is_python]
    bodies = _rejoined([_mended(block.body) for block in blocks])
    complete = [number for number, body in enumerate(bodies) if defines(body, function)]
    if complete:
        last = next((n for n in reversed(complete) if _is_worked_out(bodies[n], function)), complete[-1])
        return _whole(_joined(bodies[:last], bodies[last], bodies[last + 1 :]), function)
    unmarked = _bare(
        without_blocks(reply, (b for b in fenced if not b.is_python)), function
    ) or program_in_json(reply, function)
    if unmarked:
        return _whole(unmarked, function)
    drafts = [body for body in bodies if mentions(body, function) and not parses(body)]
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


def _refuse_cut(blocks: Iterable[FencedBlock]) -> None:
    for block in blocks:
        raise ReplyError(
            f"The reply ended inside the code block that begins at its line {block.fence.line + 1}. "
            f"{_FENCED}, shorter if need be."
        )


def _new_file(block: FencedBlock) -> FencedBlock:
    """Return a block that is a diff of added lines alone as the file which it adds; any other as it is."""
    rows = [row for row in block.body.split("\n") if row.strip() and not row.startswith(_DIFF_HEADERS)]
    if block.fence.language not in {"diff", "patch"} or not all(row.startswith("+") for row in rows):
        return block
    rows = [row for row in block.body.split("\n") if not row.startswith(_DIFF_HEADERS)]
    fence = replace(block.fence, label="python")
    return replace(block, fence=fence, body="".join(f"{row[1:]}\n" for row in rows))


def _mended(body: str) -> str:
    """Return a block's text without line numbers, typographic quotes and entities, where it is Python only then."""
    repairs: tuple[Callable[[str], str], ...] = (
        without_line_numbers,
        plain_quotes,
        lambda text: plain_quotes(without_line_numbers(text)),
        lambda text: html.unescape(text) if _ENTITY.search(text) else text,
    )
    if not parses(body):
        for repaired in (repair(body) for repair in repairs):
            if repaired != body and parses(repaired):
                return repaired
    return body


def _rejoined(bodies: list[str]) -> list[str]:
    """Return the texts of blocks with those joined that go on in the middle of a function, after a fence by mistake."""
    joined: list[str] = []
    for body in bodies:
        whole = joined[-1] + body if joined else body
        if (
            joined
            and body[:1] in " \t"
            and not parses(body)
            and not _returns_last(joined[-1])
            and parses(whole)
        ):
            joined[-1] = whole
        else:
            joined.append(body)
    return joined


def _returns_last(code: str) -> bool:
    return code.rstrip().rpartition("\n")[2].lstrip().startswith(("return", "raise"))


def _is_worked_out(code: str, function: str) -> bool:
    """Whether a block is the program: no example of its use, and no template with an empty body."""
    return not _only_imports(code, function) and (not _stub(code, function) or bool(elisions(code)))


def _only_imports(code: str, function: str) -> bool:
    """Whether a program has `function` from elsewhere: an example of its use."""
    symbols = symbols_of(code)
    return isinstance(symbols, symtable.SymbolTable) and not symbols.lookup(function).is_assigned()


def _joined(before: Sequence[str], last: str, after: Sequence[str]) -> str:
    """Return a program with the blocks around it that bind the names which it lacks, earlier ones first.

    Earlier blocks are put in front, as in a session. Later ones count where no earlier one binds a name; they stand in
    front, too, or behind the program where they need names of it.
    """
    parts, lacking = [last], _free_names(last)
    for body in [*reversed(before), *after]:
        bound = {name for name in lacking if defines(body, name)}
        if bound:
            needed = _free_names(body)
            behind = body in after and any(defines(last, name) for name in needed)
            parts.insert(len(parts) if behind else 0, body)
            lacking = (lacking - bound) | {name for name in needed if not defines(last, name)}
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
    """Return the program of a reply without fences: from its first line of code to the prose or the tag after it."""
    lines = reply.split("\n")
    starts = (
        n for n, line in enumerate(lines) if re.match(r"(?:import |from \w|def |class |@|\"\"\"|'''|#)", line)
    )
    for start in list(starts)[:_MOST_STARTS]:
        code = _without_prose(_mended("\n".join(lines[start:]) + "\n"))
        if code is not None and defines(code, function):
            return code
    return None


def _without_prose(text: str) -> str | None:
    """Return the longest beginning of a text that is Python, where what follows is none that was cut off."""
    lines = text.split("\n")
    end = len(lines)
    for _ in range(_MOST_ENDS):
        fault = symbols_of("\n".join(lines[:end]) + "\n")
        if not isinstance(fault, SyntaxError):
            break
        end = min(end, fault.lineno or end) - 1
    else:
        return None
    left = next((line for line in lines[end:] if line.strip()), "")
    return None if _CODE_LINE.match(left) else "\n".join(lines[:end]) + "\n"


def program_in_json(reply: str, function: str) -> str | None:
    """Return the program in the strings of the reply's JSON object, whatever their keys: of a call, a notebook."""
    texts = [block.body for block in fenced_blocks(reply) if block.fence.language in _JSON] or [reply]
    try:
        found = last_object(texts[-1], prose=texts[-1] is reply)
    except ReplyError:
        return None
    parts = [*texts_in(found or {})]
    programs = [number for number, part in enumerate(parts) if defines(part, function)]
    if len(programs) != 1:
        return None
    at = programs[0]
    return _joined(parts[:at], parts[at], parts[at + 1 :])


def _elided_comments(code: str) -> Iterator[tuple[int, str]]:
    previous = -1
    for line, before, text in _comments(code):
        if before.strip():
            elided = bool(_FILLER.fullmatch(before) and _SAID_BY_FILLER.search(text))
        else:
            dotted = _DOTS.search(text) and _SAID_WITH_DOTS.search(text)
            # Dots that begin a comment after another comment may go on with its sentence.
            begins = _DOTS_FIRST.match(text) and previous != line - 1
            elided = bool(_SAID.search(text) or dotted or begins)
            previous = line
        if elided:
            yield line, text


def _comments(code: str) -> Iterator[tuple[int, str, str]]:
    """Yield the comments by line from 1, with what stands before them; without those inside strings."""
    lines = code.split("\n")
    try:
        tokens = [
            token
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
            if token.type == tokenize.COMMENT
        ]
    except (tokenize.TokenError, SyntaxError):
        yield from ((n, "", line.strip()) for n, line in enumerate(lines, 1) if line.lstrip().startswith("#"))
        return
    yield from ((token.start[0], token.line[: token.start[1]], token.string) for token in tokens)


def _stub_bodies(code: str) -> Iterator[tuple[int, str]]:
    """Yield where code is left out of a function: `...` as a statement, or an exception that says so as its body.

    Handlers that ignore an error are none of these.
    """
    for function in _functions(code):
        if _is_abstract(function):
            continue
        if function.col_offset == 0 and _only_says_unfinished(function):
            yield function.lineno, f"`{function.name}` is not implemented"
        for block in _blocks(function):
            yield from (
                (statement.lineno, f"... in `{function.name}`")
                for statement in block
                if _is_ellipsis(statement)
            )


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements of a function, without those of functions and classes within and of handlers."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
            for statement in block:
                if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield from _blocks(statement)


def _stub(code: str, function: str) -> str:
    """Return in words why `function` computes nothing; an empty text where it may."""
    for found in _functions(code):
        if found.name != function:
            continue
        body = _without_docstring(found)
        if all(isinstance(statement, ast.Pass) for statement in body):
            return "does nothing"
        if len(body) == 1 and isinstance(body[0], ast.Raise) and _is_unfinished(body[0]):
            return "only raises an exception, and does not say why"
        if not isinstance(body[-1], ast.Raise | ast.While) and not _gives_values(found):
            return "returns nothing"
    return ""


def _only_says_unfinished(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = _without_docstring(function)
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    return "NotImplementedError" in ast.unparse(body[0]) and _is_unfinished(body[0])


def _is_unfinished(raised: ast.Raise) -> bool:
    """Whether an exception gives no reason, or says that the function is still to be written."""
    said = ast.unparse(raised)
    return isinstance(raised.exc, ast.Name) or (
        "NotImplementedError" in said and _TO_BE_WRITTEN.search(said.partition("(")[2]) is not None
    )


def _gives_values(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function has a `return` with a value, or yields."""
    own: list[ast.AST] = [*function.body]
    while own:
        node = own.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if isinstance(node, ast.Return) and not _is_none(node.value):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            own += ast.iter_child_nodes(node)
    return False


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


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
