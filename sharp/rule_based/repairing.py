"""Repairing a program by what happened to it: names first, then the parts that cannot be verified, then the step."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from sharp.llm.protocol import Message
from sharp.rule_based import prompt_markers as marks
from sharp.rule_based.assembly import IMPORTS
from sharp.rule_based.conversation_state import last_program
from sharp.rule_based.library import family_named
from sharp.rule_based.patching import whole_file
from sharp.rule_based.program_analysis import is_number, parsed, read, undefined_names
from sharp.rule_based.program_spec import ProgramSpec, understand
from sharp.rule_based.prompt_problem import open_question

# Stated rate of repairs that miss the cause, as models' do.
MISSED_REPAIR_RATE = 0.2

# What makes a run shorter, for a program that ran out of time or memory.
CHEAPER: Mapping[str, float] = {"MAX_STEP": 4.0, "CFL": 1.5, "RTOL": 10.0, "GRID_FACTOR": 0.5}
# What makes a run calmer, for a program that blew up.
CALMER: Mapping[str, float] = {"MAX_STEP": 0.25, "CFL": 0.5, "DIFFUSION_NUMBER": 0.5, "RTOL": 0.1}


Repair = tuple[str, str]


def repair(messages: Sequence[Message], family: str, rng: random.Random) -> str:
    """Answer a repair prompt with an explanation and a complete program."""
    code, happened = _failed(messages)
    if rng.random() < MISSED_REPAIR_RATE:
        cause, repaired = (
            "The shapes looked suspicious; I added a note.",
            f"{code.rstrip()}\n\nNOTE = 'shapes'\n",
        )
    else:
        cause, repaired = repaired_program(code, happened, family)
    return f"{cause}\n\n{whole_file(repaired)}\n"


def _failed(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the program that failed and what happened: both in one prompt, or in a conversation that goes on."""
    _, prompt = open_question(messages)
    together = marks.FAILED_PROGRAM.search(prompt)
    return (together["code"], together["rest"]) if together else (last_program(messages), prompt)


def repaired_program(code: str, happened: str, family: str) -> Repair:
    """Return the likely cause and the corrected program; the program itself where no rule applies."""
    kind = marks.FAILURE_KIND.search(happened)
    for rule in _RULES.get(kind[1] if kind else "", _ANY):
        found = rule(code, family)
        if found is not None and found[1].strip() != code.strip():
            return found
    return "I do not recognise this program's mistake and can only return it.", code


def _names(code: str, _family: str) -> Repair | None:
    """Import or correct the names that are not defined."""
    tree, error = parsed(code)
    missing = () if error else undefined_names(tree)
    if not missing:
        return None
    defined = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - set(missing)
    defined |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    defined |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for name in missing:
        if name in IMPORTS:
            code = _with_import(code, IMPORTS[name])
        elif close := get_close_matches(name, sorted(defined), n=1, cutoff=0.6):
            code = re.sub(rf"\b{re.escape(name)}\b", close[0], code)
    return f"These names were not defined: {', '.join(missing)}.", code


def _with_import(code: str, line: str) -> str:
    """Return the program with an import, before those that usually follow it."""
    order = list(IMPORTS.values())
    lines = code.splitlines(keepends=True)
    imports = [k for k, text in enumerate(lines) if text.startswith(("import ", "from "))]
    later = [k for k in imports if lines[k].rstrip() not in order[: order.index(line) + 1]]
    if not imports:
        tree, _ = parsed(code)
        place = tree.body[0].end_lineno or 0 if tree.body and ast.get_docstring(tree) else 0
        return "".join([*lines[:place], f"\n{line}\n", *lines[place:]])
    place = later[0] if later else imports[-1] + 1
    return "".join([*lines[:place], f"{line}\n", *lines[place:]])


def _unverified(code: str, family: str) -> Repair | None:
    """Write the functions anew whose structure is none of the method's, and all that does not parse."""
    reading, choices = read(code, family), understand(code, family)
    if choices is None or not (reading.unknown or reading.error):
        return None
    names = ", ".join(reading.unknown) or "a part that does not parse"
    return _composed(choices, f"{names}: not what the method needs; I rewrote it.")


def _constants(code: str, family: str) -> Repair | None:
    """Put back the constants that have no admissible value."""
    choices = understand(code, family)
    if choices is None:
        return None
    admissible = {**family_named(family).constants, **choices.recipe.constants}
    wrong = [
        name
        for name, values in admissible.items()
        if name in choices.constants
        and choices.constants[name] not in values
        and not _tuned(choices, name, values)
    ]
    if not wrong:
        return None
    constants = {**choices.constants, **{name: admissible[name][0] for name in wrong}}
    return _composed(replace(choices, constants=constants), f"No possible value: {', '.join(wrong)}.")


def _tuned(choices: ProgramSpec, name: str, values: tuple[str, ...]) -> bool:
    """Tell whether a number is no more than a factor of four away from the admissible ones, as tuning makes it."""
    numbers = [float(value) for value in values if is_number(value)]
    text = choices.constants[name]
    return bool(numbers) and is_number(text) and min(numbers) / 4 <= float(text) <= max(numbers) * 4


def _calmer(code: str, family: str) -> Repair | None:
    return _retuned(code, family, CALMER, "The step was too long for the scheme; I shortened it.")


def _cheaper(code: str, family: str) -> Repair | None:
    return _retuned(code, family, CHEAPER, "It needs too many steps; I made them longer.")


def _retuned(code: str, family: str, factors: Mapping[str, float], cause: str) -> Repair | None:
    choices = understand(code, family)
    if choices is None:
        return None
    changed = choices
    for name, factor in factors.items():
        text = choices.constants.get(name, "")
        if is_number(text):
            changed = changed.with_constant(name, f"{factor * float(text):g}")
    return None if changed is choices else _composed(changed, cause)


def _compiled(code: str, family: str) -> Repair | None:
    """Compile the loop over steps, where all parts can be."""
    choices = understand(code, family)
    compiled = None if choices is None else choices.compiled()
    cause = "Interpreting every step takes too long; I compiled the loop."
    return None if compiled is None else _composed(compiled, cause)


def _other_scheme(code: str, family: str) -> Repair | None:
    """Move to the most promising scheme of the family."""
    choices = understand(code, family)
    if choices is None:
        return None
    moved = [choices.with_recipe(r) for r in family_named(family).recipes if r.name != choices.recipe.name]
    best = max((m for m in moved if m is not None), key=lambda m: m.merit, default=None)
    if best is None:
        return None
    return _composed(best, f"This method cannot work here. {best.recipe.idea}")


def _composed(choices: ProgramSpec, cause: str) -> Repair | None:
    program = choices.compose()
    return None if program is None else (cause, program.code)


Rule = Callable[[str, str], Repair | None]
_ANY: tuple[Rule, ...] = (_names, _unverified, _constants, _other_scheme)
_RULES: Mapping[str, tuple[Rule, ...]] = {
    "timeout": (_unverified, _compiled, _cheaper, _other_scheme),
    "memory": (_unverified, _cheaper, _other_scheme),
    "non_finite": (_unverified, _constants, _calmer, _other_scheme),
}
