"""Mistakes as language models make them: small edits that turn a sound program into a faulty one."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Change = Callable[[str], str | None]
# A pattern (multi-line) and its replacement at the first place where it is found.
Edit = tuple[str, str]


@dataclass(frozen=True)
class Fault:
    """One kind of mistake.

    `shows` is how a run gives it away and `message` in which form: the name of the exception, or what is wrong with
    the output. `apply` returns the changed code, or None where the mistake does not fit the program. `weight` is how
    often the fault is drawn relative to the others that fit.
    """

    name: str
    shows: Literal["crash", "wrong", "unstable", "slow"]
    message: str
    apply: Change
    weight: float


def inject(code: str, rng: random.Random) -> tuple[str, str]:
    """Return a program with one fault that fits it, and the fault's name; ValueError where none does."""
    remaining = list(FAULTS)
    while remaining:
        fault = rng.choices(remaining, [fault.weight for fault in remaining])[0]
        changed = fault.apply(code)
        if changed is not None:
            return changed, fault.name
        remaining.remove(fault)
    raise ValueError("none of the playbook's faults fits this program")


def _either(*alternatives: tuple[Edit, ...]) -> Change:
    """Return the change that makes all edits of the first alternative that fits."""

    def change(code: str) -> str | None:
        changed = (_edited(code, edits) for edits in alternatives)
        return next((text for text in changed if text is not None), None)

    return change


def _edited(code: str, edits: tuple[Edit, ...]) -> str | None:
    before = code
    for pattern, replacement in edits:
        code, count = re.subn(pattern, replacement, code, count=1, flags=re.MULTILINE)
        if not count:
            return None
    return code if code != before else None


def _single(*edits: Edit) -> Change:
    return _either(*((edit,) for edit in edits))


def _misspell(code: str) -> str | None:
    """Drop the last letter but one of a local variable of `solver` where it is read for the last time."""
    solver = next(
        (
            node
            for node in ast.parse(code).body
            if isinstance(node, ast.FunctionDef) and node.name == "solver"
        ),
        None,
    )
    if solver is None:
        return None
    names = [node for node in ast.walk(solver) if isinstance(node, ast.Name)]
    local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    known = {node.id for node in names}
    reads = [node for node in names if isinstance(node.ctx, ast.Load) and node.id in local]
    reads = [node for node in reads if len(node.id) > 3 and _without_letter(node.id) not in known]
    if not reads:
        return None
    last = max(reads, key=lambda node: (node.lineno, node.col_offset))
    lines = code.splitlines(keepends=True)
    line, place = lines[last.lineno - 1], last.col_offset
    lines[last.lineno - 1] = f"{line[:place]}{_without_letter(last.id)}{line[place + len(last.id) :]}"
    return "".join(lines)


def _without_letter(name: str) -> str:
    return name[:-2] + name[-1]


def _cut_off(code: str) -> str | None:
    text = code.rstrip()
    return f"{text[:-1]}\n" if text.endswith(")") else None


def _lengthen_step(code: str) -> str | None:
    def longer(match: re.Match[str]) -> str:
        factor = 200.0 if match[1] == "MAX_STEP" else 10.0
        return f"{match[1]} = {float(match[2]) * factor:g}"

    changed = re.sub(r"^(CFL|DIFFUSION_NUMBER|MAX_STEP) = ([\d.e-]+)$", longer, code, flags=re.MULTILINE)
    return changed if changed != code else None


def _dx_array(code: str) -> str | None:
    module = "jnp" if "import jax.numpy as jnp" in code else "np"
    differences = rf"\1dx = {module}.diff({module}.linspace(0.0, "
    edits = (
        (r"^( +)dx = LENGTH / (\w+\.shape\[-1\])$", rf"{differences}LENGTH, \2 + 1))[1:]"),
        (r"^( +)dx = 1\.0 / \((.*) \+ 1\)$", rf"{differences}1.0, \2 + 2))"),
    )
    return _single(*edits)(code)


_FRAMES = r"solution = (?:np|jnp)\.stack\(frames, axis=-2\)"
_FORI_LOOP = r"^    return lax\.fori_loop\(0, steps, lambda _, v: advance\(v, (.*)\), u\)$"
_PYTHON_LOOP = r"\1state = \4\n\1while \2(state):\n\1    state = \3(state)"
_ITEM = r"\1\n    solution[..., 0, :] = initial"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "missing-import",
        "crash",
        "NameError",
        _single(
            (r"^import math\n\n?", ""),
            (r"^from (?:jax|scipy)\S* import \w+\n", ""),
            (r"^import numpy as np\n", ""),
        ),
        6.0,
    ),
    Fault("misspelt-name", "crash", "NameError", _misspell, 6.0),
    Fault(
        "missing-initial-frame",
        "crash",
        "shape",
        _either(
            ((r"frames, total = \[initial\], 0", "frames, total = [], 0"),),
            ((r"\[initial\] \+ \[", "["),),
            ((r"jnp\.concatenate\(\[initial\[\.\.\., None, :\], (.*)\], axis=-2\)", r"\1"),),
            (
                (r"\(len\(times\), initial", "(len(times) - 1, initial"),
                (r"^    solution.*\[\.\.\., 0, :\].*\n", ""),
                (r"\[\.\.\., k, :\]", "[..., k - 1, :]"),
            ),
        ),
        7.0,
    ),
    Fault(
        "missing-boundary",
        "crash",
        "shape",
        _single((r"^( +solution = )(?:np|jnp)\.pad\(inner, .*$", r"\1inner")),
        7.0,
    ),
    Fault(
        "wrong-stack-axis",
        "crash",
        "shape",
        _single(
            (r"^( +solution = .*), axis=-2\)$", r"\1, axis=0)"),
            (r"np\.stack\(solved\)", "np.stack(solved, axis=-1)"),
        ),
        5.0,
    ),
    Fault(
        "wrong-fft-axis",
        "crash",
        "ValueError|TypeError",
        _single((r"(\brfft\(\w+, axis=)-1\)(?!\[)", r"\g<1>0)")),
        3.0,
    ),
    Fault(
        "item-assignment",
        "crash",
        "TypeError",
        _single(
            (r"solution = solution\.at\[\.\.\., k, :\]\.set\((.*)\)$", r"solution[..., k, :] = \1"),
            (r"^( +solution = jnp\.(?:stack|concatenate)\(.*)$", _ITEM),
            (r"^( +solution = jnp\.pad\(.*)$", r"\1\n    solution[..., 0, :] = 0.0"),
        ),
        5.0,
    ),
    Fault("spacing-array", "crash", "ValueError|TypeError", _dx_array, 3.0),
    Fault("cut-off", "crash", "SyntaxError", _cut_off, 5.0),
    Fault(
        "extra-parameter",
        "crash",
        "TypeError",
        _single(
            (r"^def solver\((.*), (\w+)\)", r"def solver(\1, x_coordinate, \2)"),
            (r"^def solver\((\w+)\)", r"def solver(\1, dx)"),
        ),
        4.0,
    ),
    Fault(
        "list-of-frames",
        "crash",
        "shape",
        _either(
            ((_FRAMES, "solution = frames"), (r"return np\.asarray\(solution\)", "return solution")),
            ((_FRAMES, "solution = frames"),),
        ),
        3.0,
    ),
    Fault("float-index", "crash", "IndexError|TypeError", _single((r"\.astype\(int\)", "")), 3.0),
    Fault(
        "invented-function",
        "crash",
        "AttributeError",
        _single(
            (r"\.roll\(", ".shift("),
            (r"\.rfftfreq\(", ".rfft_frequencies("),
            (r"\bnp\.asarray\(", "np.to_array("),
        ),
        4.0,
    ),
    Fault(
        "float-step-count",
        "crash",
        "TypeError",
        _single((r"(?s)\A(?!.*math\.inf)(.*steps = max\(1, )math\.ceil\(", r"\1np.ceil(")),
        3.0,
    ),
    Fault(
        "traced-branch",
        "crash",
        "Tracer",
        _single(
            (_FORI_LOOP, r"    for _ in range(steps):\n        u = advance(u, \1)\n    return u"),
            (r"jnp\.minimum\(stable_step\(", "min(stable_step("),
            (r"^( +)state = lax\.while_loop\((\w+), (\w+), (.*)\)$", _PYTHON_LOOP),
        ),
        4.0,
    ),
    Fault("wrong-roll-axis", "wrong", "value", _single((r"(\broll\(\w+, -?\d, axis=)-1\)", r"\g<1>0)")), 4.0),
    Fault(
        "sign-error",
        "wrong",
        "value",
        _single(
            (r"^( +)return -", r"\1return "),
            (r"-0\.5j \* k \* square", "0.5j * k * square"),
            (r"exp\(-1j", "exp(1j"),
            (r"symbol = -1j", "symbol = 1j"),
            (r"- 1j \* beta", "+ 1j * beta"),
            (r"- 0\.5 \* courant \*", "+ 0.5 * courant *"),
            (r"- 0\.5 \* beta \* dt", "+ 0.5 * beta * dt"),
            (r"shift = beta", "shift = -beta"),
            (r"centres\[:-1\] - beta", "centres[:-1] + beta"),
            (r"exp\(-rho \* dt\)", "exp(rho * dt)"),
            (r"exp(m1)?\(rho \* dt\)", r"exp\1(-rho * dt)"),
            (r"\+ rho \* dt\)", "- rho * dt)"),
            (r"u \+ dt \* rho", "u - dt * rho"),
            (r"rho \* u \* \(1\.0 - u\)", "rho * u * (1.0 + u)"),
            (r"value \+ 0\.5 \* distance\*\*2", "value - 0.5 * distance**2"),
            (r"u - dt / dx \*", "u + dt / dx *"),
            (r"diagonal \* u - neighbours", "diagonal * u + neighbours"),
            (r"far = -along", "far = along"),
            (r"\[\[4, -1,", "[[4, 1,"),
            (r"^( +rate\[0\] = )(.+)$", r"\1-(\2)"),
        ),
        8.0,
    ),
    Fault("long-step", "unstable", "value", _lengthen_step, 6.0),
    Fault(
        "lost-precision", "wrong", "precision", _single((r"^jax\.config\.update\(.*x64.*\)\n\n?", "")), 3.0
    ),
    Fault(
        "dropped-coefficient",
        "wrong",
        "value",
        _single(
            (r"nu / math\.pi", "nu"),
            (r"4\.0 / 3\.0 \* eta", "eta"),
            (r"2\.0 \* np\.pi \* (\S*rfftfreq)", r"np.pi * \1"),
            (r"(roll\(u, 1, axis=-1\)\)) / dx\*\*2", r"\1 / dx"),
            (r"/ \((?:2|12|6)\.0 \* dx\)", "/ dx"),
            (r"np\.full\((.*), dx\*\*2", r"np.full(\1, dx"),
            (r"dx\*\*2 \* jnp\.ones_like", "dx * jnp.ones_like"),
            (r"/ spacing\*\*order$", "/ spacing"),
        ),
        5.0,
    ),
    Fault(
        "return-order",
        "wrong",
        "value",
        _single(
            (r"return (np\.asarray\(velocity\)), (np\.asarray\(density\))", r"return \2, \1"),
            (r"(?s)^(def solver\(a\):.*return np\.asarray\(solution)\)", r"\1.swapaxes(-2, -1))"),
        ),
        3.0,
    ),
    Fault(
        "cell-count",
        "wrong",
        "value",
        _single(
            (r"LENGTH / (\w+\.shape\[-1\])", r"LENGTH / (\1 - 1)"),
            (r"dx = 1\.0 / \((.*) \+ 1\)$", r"dx = 1.0 / \1"),
            (r"spacing = \(high - low\) / intervals$", "spacing = (high - low) / (intervals + 1)"),
        ),
        5.0,
    ),
    Fault(
        "loose-tolerance",
        "wrong",
        "value",
        _single((r"^RTOL = .*$", "RTOL = 0.1"), (r"^MOST_ITERATIONS = .*$", "MOST_ITERATIONS = 5")),
        3.0,
    ),
    Fault(
        "printed-steps",
        "slow",
        "output",
        _single((r"^( +)((u|state) = advance\(.*\))$", r"\1\2\n\1print(\3.tolist())")),
        2.0,
    ),
)
