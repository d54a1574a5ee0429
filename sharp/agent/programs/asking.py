"""Asking a model for a program, and reading its answer."""

from __future__ import annotations

from typing import Any

from sharp.agent.memory import ToolRecord
from sharp.agent.programs.generated import ALLOWED, FUNCTION
from sharp.agent.programs.tool import RUN_PROGRAM
from sharp.agent.tools import ToolError
from sharp.errors import ReplyError
from sharp.llm.prompts import render
from sharp.llm.replies import extract_code, extract_json


def prompt_for(statement: str, failed: ToolRecord | None = None) -> str:
    """Return what asks for a program, or for another one where the last has failed."""
    values = {"statement": statement, "allowed": ", ".join(ALLOWED)}
    if failed is None:
        return render("agent/program", **values)
    code = failed.recipe.parameters["code"].rstrip()
    return render("agent/program_retry", **values, code=code, error=failed.error)


def parse_program(text: str) -> dict[str, Any]:
    """Return the parameters of `run_program` by an answer: its Python block, and the keys of its JSON object.

    Raises `ReplyError` listing what is wrong. A syntax error is none of that: it is the program's.
    """
    stated = extract_json(text)
    stated.pop("code", None)
    try:
        written = RUN_PROGRAM.checked({**stated, "code": extract_code(text, FUNCTION)})
    except ToolError as error:
        raise ReplyError(str(error)) from None
    return written.model_dump(mode="json", exclude_defaults=True)
