"""What the verbs print, for people and for programs, and how they answer what they cannot use."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from sharp.cli import VERBS
from sharp.cli.exits import MEANINGS
from tests.helpers import ROOT
from tests.helpers.cli.sharp_command import PROBLEM, Sharp, end, evaluating, settings, wait_for

GROUPS = {
    "cluster": ("list", "show", "init"),
    "data": ("make", "import", "audit"),
    "cache": ("status", "clear"),
    "problems": ("list", "show", "check"),
    "models": ("list", "show"),
    "neural": ("list", "train"),
    "bench": ("agent",),
}
COMMANDS = [[verb] for verb in VERBS] + [[group, verb] for group, verbs in GROUPS.items() for verb in verbs]


def shape(value: Any) -> Any:
    """The names and kinds in a JSON object."""
    return {name: type(item).__name__ for name, item in value.items()}


def test_status(sharp: Sharp, finished: Path) -> None:
    words = sharp("status", finished).stdout.splitlines()
    assert words[0] == f"{finished}: {PROBLEM}, finished"
    assert words[-1] == f"Finished. Report: {finished / 'report.html'}"
    facts = sharp.json("status", finished)
    assert facts["finished"]
    assert facts["stage"] == "finished"
    assert facts["executions"] > facts["evaluations"] > 0
    assert {"calls", "best", "best_nrmse", "failures", "controller", "warnings"} <= facts.keys()
    assert sharp.json("watch", finished) == facts


def test_watching_a_run_at_work(sharp: Sharp, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = sharp.start("run", PROBLEM, "--run-dir", run, *settings())
    wait_for(lambda: evaluating(run), process)
    process.send_signal(signal.SIGSTOP)
    looking = sharp.start("watch", run, "--interval", "0.1", "--json")
    first = json.loads(looking.stdout.readline())
    assert first["controller"].startswith(f"process {process.pid} on ")
    assert not first["finished"]
    end(process, signal.SIGKILL)
    rest, _ = looking.communicate(timeout=600)
    assert looking.returncode == 0
    assert json.loads(rest.splitlines()[-1])["controller"] is None


def test_run_and_resume(sharp: Sharp, finished: Path, copied: Path) -> None:
    facts = sharp.json("resume", copied)
    assert shape(facts) == {
        "verified": "NoneType",
        **dict.fromkeys(("run", "best", "report", "solver"), "str"),
        **dict.fromkeys(("test_nrmse", "test_nrmse_reference", "test_data_error"), "float"),
    }
    words = sharp("resume", copied)
    first, error, *_ = words.stdout.splitlines()
    course = rf"Winner: {facts['best']}, whose error on validation data fell from (\S+) \(\w+\) to (\S+)"
    before, after = (re.fullmatch(course, first) or pytest.fail(first)).groups()
    assert float(after) < float(before)
    assert f"{facts['test_nrmse']:.3e}" in error
    assert f"Report: {copied / 'report.html'}" in words.stdout
    assert words.stderr.startswith(
        f"Reaction-diffusion with logistic growth in one dimension: pde-sharp, run directory {copied}"
    )


def test_replay(sharp: Sharp, finished: Path, copied: Path) -> None:
    facts = sharp.json("replay", finished)
    assert (facts["same"], facts["missing"], facts["differing"]) == (True, None, None)
    assert facts["digest"] in sharp("replay", finished).stdout
    journal = copied / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    partial = sharp("replay", copied, "--json")
    assert partial.returncode == 3
    assert "holds no effect" in json.loads(partial.stdout)["missing"]


def test_lists_and_files_in_words(sharp: Sharp) -> None:
    listed, words = sharp.json("problems", "list"), sharp("problems", "list").stdout
    assert all(row["id"] in words and row["title"] in words for row in listed)
    shown = sharp.json("problems", "show", "burgers")
    assert f"{shown['description']}\n\n{shown['template']}\n" == sharp("problems", "show", "burgers").stdout
    assert sharp("problems", "check", "burgers").stdout == "burgers: correct\n"
    models = sharp.json("models", "list")
    assert len(sharp("models", "list").stdout.splitlines()) == 1 + len(models)
    assert sharp.json("models", "show", "local") in models
    assert "name: local\n" in sharp("models", "show", "local").stdout


def test_a_dry_run_touches_nothing(sharp: Sharp, tmp_path: Path) -> None:
    there = Sharp(tmp_path)
    for arguments in (
        ("burgers",),
        ("burgers", "--model", "local"),
        ("burgers", "--run-dir", tmp_path / "run"),
    ):
        words = there.ok("run", *arguments, "--dry-run")
        assert list(tmp_path.iterdir()) == []
    for piece in (
        "Language-model calls",
        "Prompt tokens:",
        "Evaluations: 14.1 to 180",
        "Break-even: 18 evaluations",
    ):
        assert piece in words.stdout
    changed = there.ok("run", "burgers", "--model", "local", "--set", "seed=3", "--dry-run").stdout
    assert "  seed=3\n" in changed
    assert "  models.generator=local\n" in changed
    assert "sampling" not in changed, "what is as by default takes no room"
    planned = there.json("run", "burgers", *settings(), "--dry-run")
    assert planned["config"]["genesis"]["candidates"] == 4
    assert planned["calls"]["genesis"]["expected"] == 4
    assert {
        "evaluations",
        "prompt_tokens",
        "completion_tokens",
        "dollars",
        "break_even",
        "assumptions",
    } < set(planned)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_help_has_examples_that_begin_with_the_command(sharp: Sharp, words: list[str]) -> None:
    shown = sharp.ok(*words, "--help")
    lines = shown.stdout.splitlines()
    examples = lines[lines.index("  Examples:") + 1 :]
    examples = examples[: examples.index("")]
    assert examples
    assert all(f"{line} ".startswith(f"    sharp {' '.join(words)} ") for line in examples)
    # What `sharp mcp` writes is a protocol of its own.
    if (words[0] not in GROUPS or len(words) > 1) and words != ["mcp"]:
        assert "  --json " in shown.stdout


def test_the_examples_of_run_are_understood(sharp: Sharp, tmp_path: Path) -> None:
    for line in sharp("run", "--help").stdout.splitlines():
        if line.startswith("    sharp run ") and not {"my-run.yaml", "my-problem.yaml", "qwen3-32b"} & {
            *line.split()
        }:
            assert sharp(*line.split()[1:], "--dry-run").returncode == 0


def test_the_main_help_lists_verbs_and_exit_codes(sharp: Sharp) -> None:
    for arguments in (("--help",), ("-h",)):
        shown = " ".join(sharp(*arguments).stdout.split())
        for verb, (_, text) in VERBS.items():
            assert f" {verb} {text}" in shown
        for code, meaning in MEANINGS.items():
            assert f" {code} {meaning}" in shown


def test_first_lines_of_help_agree(sharp: Sharp) -> None:
    for verb, (_, text) in VERBS.items():
        assert sharp(verb, "--help").stdout.splitlines()[2] == f"  {text}"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["runn"],
            "there is no command 'runn'; did you mean 'run'? Valid: run, resume, sweep, reproduce, launch",
        ),
        (["problems", "display"], "there is no command 'display'. Valid: check, import, list, show"),
        (
            ["run", "burgers", "--modle", "x"],
            "no option '--modle'; did you mean '--model'? Valid: --run-dir, --set",
        ),
        (["--verbose"], "there is no option '--verbose'; did you mean '--version'? Valid: --version, --help"),
        (["data", "make", "burgers", "--kind", "exact"], "'exact' is not one of 'pdebench', 'reference'"),
        (["data", "make", "burgers", "--samples", "0"], "0 is not in the range x>=1"),
        (["status"], "Missing argument 'RUN'"),
        (
            ["run", "burger"],
            "command line: problem: there is no problem 'burger'; did you mean 'burgers'? Valid",
        ),
        (["run", "burgers", "--set", "seed"], "--set 'seed': expected KEY=VALUE"),
        (
            ["run", "burgers", "--set", "sed=1"],
            "--set: sed is not a key of a run configuration; did you mean 'seed'?",
        ),
        (["run", "burgers", "--model", "gpt4"], "--model: models.analyst: there is no model card 'gpt4'"),
        (["run", "burgers", "--base-url", "http://x/v1"], "--base-url needs --model"),
        (["run", "burgers", "--model", "local"], "nothing says where model 'local' is served: set base_url"),
        (["run", "burgers", "--model", "gpt-4o"], "environment variable OPENAI_API_KEY"),
        (
            ["run", "burgers", "--model", "local", "--base-url", "http://me:pw@x/v1"],
            "a URL must not hold credentials",
        ),
        (["run", "nowhere.yaml"], "nowhere.yaml: cannot be read: No such file"),
        (["models", "show", "gpt4o"], "no model card 'gpt4o'; did you mean 'gpt-4o'? Valid: codellama"),
        (["problems", "show", "burger"], "unknown problem 'burger'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    done = Sharp(tmp_path)(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_budgets_and_servers_that_do_not_exist(sharp: Sharp, finished: Path) -> None:
    before = (finished / "run.yaml").read_bytes()
    for option, complaint in (
        (
            "--budget=cals=5",
            "--budget cals=5: 'cals' is not a budget; did you mean 'calls'? Valid: calls, tokens",
        ),
        ("--budget=calls=many", "--budget: budget.calls: input should be a valid integer"),
        ("--budget=calls", "--budget 'calls': expected NAME=VALUE"),
        (
            "--server=x=http://h/v1",
            "--server x=http://h/v1: 'x' is not a model of this run. Valid: rule-based",
        ),
        ("--server=rule-based=nowhere", "--server: models.servers.rule-based.base_url: expected a URL"),
    ):
        assert complaint in sharp.fails(2, "resume", finished, option)
    assert (finished / "run.yaml").read_bytes() == before


def test_plain_lines_without_a_terminal(sharp: Sharp, finished: Path) -> None:
    said = (sharp.folder / "finished.stderr").read_text()
    lines = said.splitlines()
    assert "\x1b" not in said
    assert "\r" not in said
    assert "analysis: strategy hybrid" in lines
    assert "genesis: 4 programs, 0 unusable answers" in lines
    (chosen,) = (
        line for line in lines if line.startswith("cycle 1: the judges have read the programs and nominate")
    )
    assert any(line.startswith("  c00") and ": leads" in line for line in lines[lines.index(chosen) :])
    assert any(re.match(r"round 1\.2: judges? \d.* \w.*leads with \d\.", line) for line in lines)
    assert lines[-1].startswith("winner ")


def test_a_live_line_on_a_terminal(sharp: Sharp, tmp_path: Path) -> None:
    near, far = pty.openpty()
    process = sharp.start(
        "run", PROBLEM, "--run-dir", tmp_path / "run", *settings(synthesis__max_rounds="1"), stderr=far
    )
    os.close(far)
    shown = b""
    while True:
        try:
            shown += os.read(near, 65536)
        except OSError:
            break
    os.close(near)
    process.communicate(timeout=600)
    assert process.returncode == 0
    text = shown.decode()
    assert "\r\x1b[2K" in text
    assert "4/4 programs" in text or "3/4 programs" in text
    assert " calls, " in text
    assert "[cycle-1/round-1/c00" in text
    assert text.endswith("\x1b[1A\x1b[2K")
    assert "analysis: strategy hybrid\r\n" in text


def test_a_reader_that_stops_reading(sharp: Sharp) -> None:
    near, far = os.pipe()
    os.close(near)
    process = sharp.start("models", "list", stdout=far)
    os.close(far)
    _, stderr = process.communicate(timeout=600)
    assert "Traceback" not in stderr
    assert process.returncode == 1


def test_the_page_about_the_command_line_has_an_example_of_every_command() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert all(f"# sharp {' '.join(words)}\n" in page for words in COMMANDS)
