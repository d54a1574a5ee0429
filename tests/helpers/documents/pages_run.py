"""Does what a page tells its readers to do: writes its files, runs its commands, tries its examples.

A fence with a title is a file. `sh` is run, `text` after it is what it prints, with `...` for what may differ; `python`
with prompts is a session of its own for the page. `console` is for what no test can do, and is not run.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_page(page: Path, folder: Path, variables: Mapping[str, str], replaced: Mapping[str, str]) -> int:
    """Do what the page says within a folder, and return how many things were done.

    `variables` are added to the environment of commands; `replaced` are texts of the page that stand for others here,
    such as the address of a server.
    """
    text = page.read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert old in text, f"{page.name} does not say {old}"
        text = text.replace(old, new)
    printed, names, done = "", {}, 0
    for kind, title, body in _FENCE.findall(text):
        if title:
            (folder / title).parent.mkdir(exist_ok=True)
            (folder / title).write_text(body)
        elif kind == "sh":
            printed = _run(body, folder, variables)
        elif kind == "text":
            assert doctest.OutputChecker().check_output(body, printed, FLAGS), (
                f"{body}\n-- printed:\n{printed}"
            )
        elif kind == "python":
            _try(body, names, page.name, folder)
        else:
            continue
        done += 1
    return done


def _run(commands: str, folder: Path, variables: Mapping[str, str]) -> str:
    own = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", commands],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables, "PATH": own},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _try(examples: str, names: dict[str, object], name: str, folder: Path) -> None:
    parsed = doctest.DocTestParser().get_doctest(examples, names, name, name, 0)
    assert parsed.examples, f"{name} has Python without prompts: name the file in a title"
    said: list[str] = []
    with chdir(folder):
        doctest.DocTestRunner(optionflags=FLAGS).run(parsed, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    names.update(parsed.globs)
