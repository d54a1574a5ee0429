"""Programs as models wrap them: what is certain is read, what is left out is refused."""

import json

import pytest

from sharp.errors import ReplyError
from sharp.llm import extract_code, said
from sharp.llm.replies_code import elisions

HEAD = "import numpy as np\n\nCFL = 0.8\n"
BODY = "def solver(u, t, nu):\n    return np.stack([CFL * u for _ in t], axis=1)\n"
CODE = f"{HEAD}\n\n{BODY}"


def fenced(code: str, label: str = "python") -> str:
    return f"```{label}\n{code}```\n"


NUMBERED = "".join(f"{n:>3} | {line}\n" for n, line in enumerate(CODE.splitlines(), 1))
HARMONY = (
    "<|channel|>analysis<|message|>Let me think.\n"
    + fenced("def solver(u, t, nu):\n    return 0\n")
    + "<|end|>"
    "<|start|>assistant<|channel|>final<|message|>" + fenced(CODE) + "<|return|>"
)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(CODE, id="bare"),
        pytest.param(f"Here is my solver.\n\n{CODE}\nIt is exact in time.\n", id="bare between prose"),
        pytest.param(f"So:\n```python\n{CODE}", id="closing fence forgotten"),
        pytest.param(
            f"<think>{fenced('def solver(u, t, nu): return 1')}</think>{fenced(CODE)}", id="reasoning"
        ),
        pytest.param(HARMONY, id="channels"),
        pytest.param(fenced(NUMBERED), id="line numbers"),
        pytest.param(
            fenced(CODE.replace("0.8", "0.8  # “safe”").replace(" * u", " * u")), id="quotes in a comment"
        ),
        pytest.param("```json\n" + json.dumps({"plan": "x", "code": CODE}) + "\n```", id="in a JSON object"),
        pytest.param(
            fenced(CODE) + "Use it so:\n" + fenced("print(solver(u0, times, 0.1))\n"), id="example of use"
        ),
    ],
)
def test_a_program_is_read_however_it_is_wrapped(reply: str) -> None:
    assert extract_code(reply).replace("  # “safe”", "") == CODE


def test_blocks_that_belong_together_are_joined() -> None:
    assert extract_code(f"Constants:\n{fenced(HEAD)}The solver:\n{fenced(BODY)}") == f"{HEAD}\n{BODY}"


def test_a_block_that_repeats_one_function_replaces_it_in_the_draft_before() -> None:
    helper = "def rate(u):\n    return -CFL * u\n"
    draft = f"{HEAD}\n\n{helper}\n\n{BODY}"
    better = "def solver(u, t, nu):\n    return np.stack([u + s * rate(u) for s in t], axis=1)\n"
    joined = extract_code(f"{fenced(draft)}On reflection:\n{fenced(better)}")
    assert joined == f"{draft}\n{better}"


def test_typographic_quotes_are_mended_where_the_program_is_python_only_then() -> None:
    assert extract_code(fenced(CODE.replace("CFL = 0.8", "CFL = 0.8\nNAME = “flux”"))) == CODE.replace(
        "CFL = 0.8", 'CFL = 0.8\nNAME = "flux"'
    )


@pytest.mark.parametrize(
    "comment",
    [
        "# ... rest of the time loop unchanged",
        "# ... (rest of the code unchanged)",
        "# ... existing code ...",
        "# [rest of the implementation remains the same]",
        "# (helper functions as before, omitted for brevity)",
        "# same helper functions as above, unchanged",
        "# …",
        "# your code here",
    ],
)
def test_a_program_that_leaves_out_code_is_refused_with_the_line(comment: str) -> None:
    with pytest.raises(ReplyError, match=r"leaves out code \(line 6: "):
        extract_code(fenced(f"{HEAD}\n\n{comment}\n{BODY}"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [("    pass\n", "does nothing"), ('    """Doc."""\n', "does nothing"), ("    ...\n", "leaves out code")],
)
def test_a_stub_is_refused(body: str, reason: str) -> None:
    with pytest.raises(ReplyError, match=reason):
        extract_code(fenced(f"def solver(u, t, nu):\n{body}"))


@pytest.mark.parametrize(
    "remark",
    [
        "# The rest of the domain is periodic.",
        "# Same stability bound as for the heat equation.",
        "# Boundary values remain unchanged in time.",
        "# x_0, x_1, ..., x_{N-1} are cell centres",
        "# The previous state is kept for the second stage.",
        "# Here the flux is upwinded.",
    ],
)
def test_remarks_on_the_method_leave_out_nothing(remark: str) -> None:
    code = f"{HEAD}\n\n{remark}\n{BODY}"
    assert elisions(code) == ()
    assert extract_code(fenced(code)) == code


def test_dots_in_strings_slices_and_overloads_leave_out_nothing() -> None:
    code = CODE + '\n\nTEXT = """\n# ... existing code ...\n"""\n\n\ndef last(u):\n    return u[..., -1]\n'
    assert extract_code(fenced(code)) == code


def test_an_answer_is_remembered_without_its_reasoning() -> None:
    assert said("<think>long\nthoughts</think>\nThe answer.") == "\nThe answer."
    assert said("No reasoning here.") == "No reasoning here."
    assert 0 < len(said("<think>" + "never ends " * 1000)) <= 1000
