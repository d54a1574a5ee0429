"""Calls of tools that a reply writes as text, read as the objects and programs that were asked for.

Model families write such calls each in a form of its own (Hermes and Qwen, Llama, Mistral, DeepSeek, gpt-oss), and
servers turn them into structured calls only where tools were offered. Nothing is executed.
"""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

# What a pattern encloses ends where the next one begins, so that reading stays linear.
_CONTROL = re.compile(
    r"<\|(?:python_tag|eom_id|tool_call|tool_calls)\|>|\[TOOL_CALLS\]|</?(?:tool_call|tool_calls|function_calls)>"
    r"|<\|start_header_id\|>\w*+<\|end_header_id\|>|<\|im_start\|>(?:assistant\b)?"
)
_XML_CALL = re.compile(
    r"<(function|invoke)(?:=| +name=)[\"']?([\w.-]++)[\"']?>(?P<inside>(?:(?!</?\1\b).)*+)</\1>", re.DOTALL
)
_XML_ARGUMENT = re.compile(
    r"<parameter(?:=| +name=)[\"']?([\w.-]++)[\"']?>(?P<value>(?:(?!</?parameter\b).)*+)</parameter>",
    re.DOTALL,
)
_PREFORMATTED = re.compile(
    r"<pre\b[^>]*+>\s*+(?:<code\b[^>]*+>)?(?P<code>(?:(?!</?(?:code|pre)\b).)*+)(?:</code>)?\s*+</pre>",
    re.DOTALL,
)
_BOXED = re.compile(r"\${0,2}\\boxed\{(?:\\text\w*+\{)?([^{}\n]*+)\}{1,2}\${0,2}")
_HEREDOC = re.compile(
    r"^(?:cat|tee)\b[^\n]*<< ?['\"]?(\w++)['\"]?[^\n]*\n(?P<file>(?:(?!^\1$|^(?:cat|tee)\b.*<<).*\n)*+)\1$",
    re.MULTILINE,
)
_PYTHON_CALL = re.compile(r"^\[?[A-Za-z_][\w.]*+\(", re.MULTILINE)
_CALL_KEYS = frozenset(
    {"name", "tool", "function", "id", "type", "index", "arguments", "parameters", "args", "input"}
)
_GIVEN = ("arguments", "parameters", "args", "input")
_MOST_CALLS = 8


def without_call_syntax(text: str) -> str:
    """Return a reply with calls in tags as fenced JSON and files of shell scripts as fenced Python.

    Control tokens and LaTeX's boxes are left out, what is escaped for HTML, as a whole or as preformatted text, is
    unescaped.
    """
    if "&lt;" in text and "<" not in text:
        text = html.unescape(text)
    text = _PREFORMATTED.sub(lambda match: f"\n```\n{html.unescape(match['code'])}\n```\n", text)
    text = _BOXED.sub(r"\n\1\n", text)
    text = _XML_CALL.sub(_as_json, _CONTROL.sub("", text))
    return _HEREDOC.sub(lambda match: f"```python\n{match['file']}```", text)


def arguments(value: dict[str, Any]) -> dict[str, Any]:
    """Return what an object hands to a tool, if it is a call: `{"name": …, "arguments": {…}}`; any other as it is."""
    match value:
        case {"tool_calls": [dict(call)]}:
            return arguments(call)
        case {"function": dict(call)} if value.keys() <= _CALL_KEYS:
            return arguments(call)
    given = next((value[key] for key in _GIVEN if key in value), None)
    if not value.keys() <= _CALL_KEYS or not value.keys() & {"name", "tool", "function"}:
        return value
    if isinstance(given, str):
        with suppress(ValueError):
            given = json.loads(given)
    return given if isinstance(given, dict) else value


def python_call(text: str) -> dict[str, Any] | None:
    """Return what the call in Python's syntax that a text ends with hands over, `[tool(key="value")]`; else None."""
    for start in [match.start() for match in _PYTHON_CALL.finditer(text)][-_MOST_CALLS:]:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            call = ast.parse(text[start:].strip(), mode="eval").body
            if isinstance(call, ast.List) and len(call.elts) == 1:
                call = call.elts[0]
            if isinstance(call, ast.Call):
                given = _handed_over(call)
                if given:
                    return given
    return None


def _handed_over(call: ast.Call) -> dict[str, Any]:
    if call.args and not call.keywords:
        (only,) = map(ast.literal_eval, call.args)
        return only if isinstance(only, dict) else {}
    named = all(word.arg for word in call.keywords) and not call.args
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords} if named else {}


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value at any depth; a list of lines, as in a notebook, is one text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in arguments(dict(value)).values():
            yield from texts_in(inner)
    elif isinstance(value, list):
        if value and all(isinstance(line, str) for line in value):
            yield ("" if any(line.endswith("\n") for line in value) else "\n").join(value)
        else:
            for inner in value:
                yield from texts_in(inner)


def _as_json(match: re.Match[str]) -> str:
    given = {name: _value(text.strip("\n")) for name, text in _XML_ARGUMENT.findall(match["inside"])}
    call = {"name": match[2], "arguments": given or match["inside"].strip()}
    return f"\n```json\n{json.dumps(call)}\n```\n"


def _value(text: str) -> Any:
    """Return a parameter's value: a list or an object where it is one in JSON, else the text."""
    with suppress(ValueError):
        return json.loads(text) if text[:1] in ("[", "{") else text
    return text
