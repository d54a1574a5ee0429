"""Every prompt renders in every situation in which the stages use it, and says nothing that was not filled in."""

import re

import pytest
from jinja2 import UndefinedError, meta

from sharp.errors import ConfigurationError
from sharp.llm import prompts
from sharp.llm.prompts import prompt_hashes, render
from sharp.methods.pde_sharp import pde_sharp
from tests.helpers import ROOT
from tests.helpers.models.scripted import (
    ScriptedEffects,
    fenced,
    keep,
    patch,
    program,
    script,
    selection,
    session,
    verdict,
)


async def asked(rules=None, **options):
    """Play a tournament and return every prompt that was sent, by path."""
    answers = {
        r"^genesis/c\d+/code$": lambda path, _: fenced(program(int(path.split("/")[1][1:]) / 10)),
        r"select/judge": selection(["c001", "c002"]),
        r"round-\d+/judge-\d+$": patch("c001", "ERROR = 0.1", "ERROR = 0.01"),
    }
    answers = {**(rules or {}), **answers, **(rules or {})}
    effects = ScriptedEffects(script(rules=answers))
    await pde_sharp(session(effects, **{"genesis": {"candidates": 3}, **options}))
    return {path: request.messages[-1].content for path, request in effects.chats.items()}


SITUATIONS = {
    "default": {},
    "merged": {"analysis": {"prompting": "merged"}},
    "written": {"analysis": {"prompting": "written-multi"}},
    "written as one": {"analysis": {"prompting": "written-single"}},
    "no stability": {"analysis": {"stability": False}},
    "merged without stability": {"analysis": {"prompting": "merged", "stability": False}},
    "fixed criteria": {"synthesis": {"criteria": "fixed"}},
    "own criteria": {"synthesis": {"criteria": "self-generated"}},
    "residual": {"feedback": {"metrics": ["residual"]}},
    "both": {"feedback": {"metrics": ["nrmse", "residual"]}},
    "measures": {"feedback": {"metrics": ["initial_condition", "cfl"]}},
    "weights": {"feedback": {"metrics": ["nrmse", "two_grid"], "weights": {"nrmse": 1, "two_grid": 0.5}}},
    "none": {"feedback": {"metrics": ["none"]}},
    "two cycles": {"synthesis": {"next_cycle": "always", "max_cycles": 2}},
}
RULES = {
    r"analysis/write$": verdict(prompts=["Think of the characteristics."]),
    r"analysis/prompt-1$": "They are straight.",
    r"analysis/merged$": verdict(
        classification={"type": "hyperbolic"},
        analytical={"verdict": "no"},
        transformation={"verdict": "no"},
        hybrid={"verdict": "yes", "parts": [{"term": "a", "treatment": "exact", "how": "b"}]},
    ),
    r"criteria$": verdict(criteria=["phase error"]),
}


@pytest.mark.parametrize("name", SITUATIONS)
async def test_prompts_are_complete_in_every_configuration(name):
    sent = await asked(RULES, **SITUATIONS[name])
    assert len(sent) > 8
    for path, text in sent.items():
        assert not re.search(r"\{\{|\{%|%\}|\bNone\b|\bUndefined\b", text), path
        assert "\n\n\n\n" not in text, path
        assert text.count("```") % 2 == 0, path


async def test_branches_failures_and_repairs_render_too():
    rules = {
        **RULES,
        r"analysis/analytical": verdict(verdict="yes", solution="u0(x - beta*t)", reason="characteristics"),
        r"genesis/c\d+/derive": "Derivation.",
        r"^genesis/c001/code$": fenced(program(0.1, crash="boom")),
        r"debug-1$": fenced(program(0.1)),
        r"round-2/judge-1": patch("c002", "NO SUCH LINE", "x"),
        r"round-2/judge-2$": keep(),
        r"round-2/judge-3$": patch("c001d1", "ERROR = 0.1", "ERROR = 0.01"),
        r"round-[34]/judge-\d$": keep(),
        r"select/judge-2": "no JSON",
    }
    sent = await asked(rules)
    kinds = {
        "derive": "## Derivation",
        "debug": "## What happened",
        "retry-1": "could not be",
        "reporter": "## Course of the tournament",
    }
    for part, heading in kinds.items():
        found = [text for path, text in sent.items() if part in path]
        assert found, part
        assert all(heading in text for text in found), part


def test_every_prompt_file_is_used():
    folders = (ROOT / "sharp" / name for name in ("tournament", "methods", "agent", "llm"))
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    paths += (ROOT / "prompts").rglob("*.md")  # one prompt may include another
    sources = "\n".join(path.read_text() for path in paths)
    for name in prompt_hashes():
        stage, step = name.split("/")
        chosen = f'f"{stage}/{{' in sources and f'"{step}"' in sources
        assert name in sources or chosen, name


def test_a_missing_value_is_an_error_in_every_prompt():
    environment = prompts._environment(tuple(prompts.resource_dirs("prompts")))
    for name in prompt_hashes():
        source = environment.loader.get_source(environment, f"{name}.md")[0]
        if meta.find_undeclared_variables(environment.parse(source)):
            with pytest.raises(UndefinedError):
                render(name)


def test_an_unknown_prompt_lists_the_known_ones():
    with pytest.raises(ConfigurationError, match="analysis/classification"):
        render("analysis/clasification")


def test_a_users_prompt_hides_the_shipped_one(tmp_path, monkeypatch):
    mine = tmp_path / "prompts" / "common"
    mine.mkdir(parents=True)
    (mine / "system.md").write_text("Mine.\n")
    before = prompt_hashes()
    monkeypatch.setenv("SHARP_RESOURCES", str(tmp_path))
    assert render("common/system") == "Mine.\n"
    after = prompt_hashes()
    assert {name for name in before if before[name] != after[name]} == {"common/system"}


def test_code_is_never_escaped():
    code = "a < b & c > 'd'"
    values = {"attempts": [], "output": "", "too_costly": False, "function": "solver"}
    text = render("debug/repair", description="d", code=code, failure="f", **values)
    assert "a < b & c > 'd'" in text
