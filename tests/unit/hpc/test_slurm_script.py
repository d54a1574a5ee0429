"""Quoting in batch scripts: values that neither bash nor sbatch misreads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc.slurm import Script, ScriptError, log_pattern, role_script
from hpc.slurm.script import directive, quote_expanding
from sharp.runs.cluster.profiles import load_cluster, render_script

HOSTILE = (
    *("a b", "it's", 'say "no"', "$(touch x)", "`touch x`", "$HOME", "a#b", "a\\b", "-rf", "; true"),
    *("a&b|c>d", "*", "~", "!x", "%j", "é ü 解", "(a) {b} [c]", "=", "\\\\", "'", '"', "#SBATCH --nice=5"),
)
argument = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec="utf-8", exclude_characters="\0")))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(arguments=st.lists(argument, min_size=1, max_size=5), value=argument)
def test_bash_hands_on_what_was_given(arguments: list[str], value: str) -> None:
    script = Script(
        name="x",
        command=("/usr/bin/env", "bash", "-c", 'printf "%s\\0" "$V" "$@"', "bash", *arguments),
        environment={"V": value},
    )
    done = subprocess.run(["bash"], input=render_script(script).encode(), capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [value, *arguments]


def test_only_variables_of_the_node_are_expanded(tmp_path: Path) -> None:
    text = f"printf %s {quote_expanding('$A/${B_2}-it is $(touch x) `y` $ {A} $1')}"
    done = subprocess.run(
        ["bash", "-c", text], env={"A": "a  a", "B_2": "b"}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "a  a/b-it is $(touch x) `y` $ {A} $1"
    unset = subprocess.run(
        ["bash", "-c", f"{text}; echo on"], env={"A": "a"}, cwd=tmp_path, capture_output=True
    )
    assert unset.returncode != 0
    assert unset.stdout == b""
    assert list(tmp_path.iterdir()) == []
    assert quote_expanding("") == "''"


@pytest.mark.parametrize("value", ["two\nlines", "a\0b", "tab\t", "", "escape\x1b[0m", "\u2028"])
def test_directives_refuse_what_sbatch_could_misread(value: str) -> None:
    with pytest.raises(ScriptError, match="one line of printable text"):
        directive("comment", value)


@pytest.mark.parametrize(
    "script",
    [
        Script("x", ("a\0b",)),
        Script("x", ("a",), setup=("two\nlines",)),
        Script("x", ("a",), remarks=("two\n#SBATCH --lines",)),
        Script("x", ("a",), environment={"not a name": "x"}),
        Script("x", ("a",), directives={"bad option": "x"}),
        Script("x\ny", ("a",)),
    ],
)
def test_what_no_quoting_can_carry_is_refused(script: Script) -> None:
    with pytest.raises(ScriptError):
        render_script(script)


def test_logs_go_to_absolute_folders() -> None:
    assert log_pattern(Path("/a/50% b"), "%A_%a.out") == "/a/50%% b/%A_%a.out"
    for folder in ("relative", "/back\\slash"):
        with pytest.raises(ScriptError, match="absolute path without backslash"):
            log_pattern(Path(folder))


def test_the_token_goes_into_the_name_where_comments_are_refused() -> None:
    cluster = load_cluster("cpu-cluster")
    without = cluster.model_copy(update={"unsupported_options": ("comment",)})
    scripts = [
        role_script(c, "evaluate", name="run", token="t7", command=("true",), log="/l")
        for c in (cluster, without)
    ]
    assert [(s.name, s.directives.get("comment")) for s in scripts] == [("run", "t7"), ("run-t7", None)]
