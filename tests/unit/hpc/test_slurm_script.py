"""Batch scripts: golden files, and hostile values that neither bash nor sbatch misreads.

After a wanted change, `python -m tests.unit.hpc.test_slurm_script` writes the golden files again.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc.slurm import (
    RoleName,
    Script,
    ScriptError,
    log_pattern,
    role_script,
)
from hpc.slurm.script import directive, quote_expanding
from sharp.resources import list_resources
from sharp.runs.cluster.profiles import load_cluster, render_script

GOLDEN = Path(__file__).parent / "golden"
SHIPPED = ("cpu-cluster", "gpu-cluster", "login-only")
HOSTILE = (
    *(
        "a b",
        "it's",
        'say "no"',
        "$(touch x)",
        "`touch x`",
        "$HOME",
        "a#b",
        "a\\b",
        "-rf",
        "; true",
        "a&b|c>d",
    ),
    *("*", "~", "!x", "%j", "é ü 解", "(a) {b} [c]", "=", "\\\\", "'", '"', "#SBATCH --nice=5"),
)


def golden_scripts() -> Iterator[tuple[Path, str]]:
    for name in SHIPPED:
        cluster = load_cluster(list_resources("data", "clusters/*.yaml")[name])
        for role in get_args(RoleName):
            script = role_script(
                cluster,
                role,
                name="burgers-s0",
                token="0123abcd",
                command=("/opt/sharp/bin/python", "-P", "-m", "module", "/shared/runs/my run"),
                log=log_pattern(Path("/shared/runs/my run/logs")),
                directives={"signal": "B:USR2@300", "no-requeue": True, "requeue": False},
                remarks=("Generated; submit again: sharp cluster show", name),
            )
            yield GOLDEN / f"{name}-{role}.sh", render_script(script)
    values = {f"V{number}": value for number, value in enumerate(HOSTILE)}
    script = Script(
        name=" ".join(HOSTILE),
        command=("printf", "%s\\0", *HOSTILE, "two\nlines"),
        directives={"comment": HOSTILE[2], "output": log_pattern(Path("/tmp/it's 100% $(odd)")), "nice": 5},
        environment=values,
        node_environment={"SCRATCH": "$TMPDIR/it's ${USER}/$(x)"},
    )
    yield GOLDEN / "hostile.sh", render_script(script)


def test_scripts_are_what_they_were() -> None:
    scripts = dict(golden_scripts())
    assert set(scripts) == set(GOLDEN.glob("*.sh"))
    for file, text in scripts.items():
        assert text == file.read_text(), file.name


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.sh")), ids=lambda file: file.stem)
def test_bash_takes_every_script(file: Path) -> None:
    done = subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_directive_stands_behind_the_first_command() -> None:
    for _, text in golden_scripts():
        _, _, commands = text.partition("\nset -e\n")
        assert not any(line.startswith("#SBATCH") for line in commands.splitlines())


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


if __name__ == "__main__":
    for path in GOLDEN.glob("*.sh"):
        path.unlink()
    for path, content in golden_scripts():
        path.write_text(content)
