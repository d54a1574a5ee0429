"""What shells and terminals ask of the command: completion, and no colours where they are not wanted."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest


def complete(line: str, **variables: str) -> list[str]:
    """Return what the command answers bash, which asks it in the environment."""
    asked = {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_SHARP_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("sharp")],
        env={**os.environ, **asked, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return [word.partition(",")[2] for word in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("sharp re", ["resume", "reproduce", "retry", "report", "replay"]),
        ("sharp run --prior", ["--prior-run"]),
        ("sharp solve heat-rod", ["heat-rod-two-ends"]),
        ("sharp problems show burg", ["burgers", "burgers-plane"]),
        ("sharp run burgers --model qwen3-c", ["qwen3-coder-30b", "qwen3-coder-480b"]),
        ("sharp evaluate advection solver.py --split ", ["validation", "test"]),
    ],
)
def test_words_are_completed(line: str, offered: list[str]) -> None:
    found = [word for word in complete(line) if word != line.rpartition(" ")[2]]
    assert set(offered) <= set(found), found
    assert all(word.startswith(line.rpartition(" ")[2]) for word in found)


def test_ones_own_problems_are_completed(tmp_path: Path) -> None:
    (tmp_path / "data" / "problems").mkdir(parents=True)
    (tmp_path / "data" / "problems" / "my-own-rod.yaml").touch()
    assert "my-own-rod" in complete("sharp solve my-o", SHARP_RESOURCES=str(tmp_path))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    script = subprocess.run(
        [Path(sys.executable).with_name("sharp")],
        env={**os.environ, "_SHARP_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"_SHARP_COMPLETE={shell}_complete" in script


def at_a_terminal(*arguments: str, status: int | None = 0, **variables: str) -> str:
    """Return what the command writes to a terminal; it ends with the status, if one is given."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "sharp.cli", *arguments],
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", **variables},
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the terminal is closed once nobody writes to it
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    ended = process.wait()
    assert status is None or ended == status
    return written.decode()


def test_tables_fit_the_terminal_and_colours_can_be_switched_off() -> None:
    bright = at_a_terminal("models", "list")
    assert "\x1b[" in bright
    plain = at_a_terminal("models", "list", NO_COLOR="1")
    assert "\x1b[" not in plain
    assert max(map(len, plain.splitlines())) <= 60
    assert "qwen3-coder-480b  " in plain, "names are not broken"


def test_lines_of_the_doctor_fit_the_terminal_and_lose_their_colours(tmp_path: Path) -> None:
    bright = at_a_terminal("doctor", "--dir", str(tmp_path), status=None)
    assert "\x1b[32mok" in bright
    plain = at_a_terminal("doctor", "--dir", str(tmp_path), status=None, NO_COLOR="1")
    assert "\x1b[" not in plain
    # A path or a name is not broken.
    assert all(len(line) <= 60 or " " not in line.strip() for line in plain.splitlines())
