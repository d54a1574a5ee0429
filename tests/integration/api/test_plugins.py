"""Plug-ins in packages of their own: found, used, and reported where they are broken or hide others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import h5py
import numpy as np
import pytest

from sharp.errors import ConfigurationError
from sharp.plugins import load_plugin, plugin_names
from tests.helpers import ROOT

PLUGINS = ROOT / "examples" / "plugins"


def install(source: Path, target: Path) -> None:
    """Install a distribution of modules as pip would: the modules, and metadata with the entry points."""
    document = tomllib.loads((source / "pyproject.toml").read_text())
    project = document["project"]
    target.mkdir(exist_ok=True)
    for module in document["tool"]["setuptools"]["py-modules"]:
        shutil.copy(source / f"{module}.py", target)
    record(target, project["name"], project["entry-points"])


def record(target: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    info = target / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in each.items()) for group, each in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def python(target: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(target), **variables}
    return subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, cwd=target, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All example plug-ins, installed into one folder."""
    target = tmp_path_factory.mktemp("plugins") / "site"
    for source in PLUGINS.iterdir():
        install(source, target)
    return target


def test_the_built_in_ones_are_registered_in_the_same_way() -> None:
    assert "rule-based" in plugin_names("sharp.chat_backends")
    assert {"pde-sharp", "codepde"} <= set(plugin_names("sharp.methods"))
    assert {"chebyshev", "fd", "pinn"} <= set(plugin_names("sharp.solvers"))
    assert plugin_names("sharp.feedback_metrics") == ("built-in",)


def test_an_unknown_name_is_refused_with_those_that_are_valid() -> None:
    with pytest.raises(
        ConfigurationError, match=r"there is no method 'codepd'; did you mean 'codepde'\? valid methods: aide"
    ):
        load_plugin("sharp.methods", "codepd")


def test_a_numerical_method_solves_and_is_verified_by_the_others(installed: Path) -> None:
    code = """
import sharp
found = sharp.solve("heat-rod-two-ends", method="mapped-chebyshev")
print(found.method, found.verdict.status, found.opinion.method, found.error < 1e-6)
"""
    done = python(installed, code)
    assert done.returncode == 0, done.stderr
    method, status, second, accurate = done.stdout.split()
    assert (method, status, accurate) == ("mapped-chebyshev", "verified", "True")
    assert second != method


DIPPING = """
import numpy as np
def solver(u0_batch, t_coordinate, beta):
    u = np.repeat(u0_batch[:, None], len(t_coordinate), 1)
    u[:, -1, 0] = -u.max() / 2
    return u
"""


def test_a_metric_scores_a_program_in_the_worker(installed: Path, tmp_path: Path) -> None:
    """The program falls half as far below zero as the largest value is above."""
    t, x = np.linspace(0, 2, 41), (np.arange(64) + 0.5) / 64
    waves = 1.5 + np.cos(2 * np.pi * (x - 0.1 * t[:, None] - np.arange(4)[:, None, None] / 4))
    with h5py.File(tmp_path / "waves.hdf5", "w") as file:
        file.update({"tensor": waves, "t-coordinate": t, "x-coordinate": x})
    (tmp_path / "mine.py").write_text(DIPPING)
    code = f"""
import sharp
solver, data = {str(tmp_path / "mine.py")!r}, {str(tmp_path / "waves.hdf5")!r}
found = sharp.evaluate("advection", solver, samples=2, data=data, measures=("positivity",))
print(found.failure, found.scores.measures)
"""
    done = python(installed, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "None {'positivity': 0.5}"


def test_a_method_and_a_backend_carry_a_run_that_replays(installed: Path, tmp_path: Path) -> None:
    """The command answers as the embedded model would, and notes what it was asked."""
    answers = tmp_path / "answers.py"
    answers.write_text(
        "import json, sys\n"
        "from pathlib import Path\n"
        "asked = json.load(sys.stdin)\n"
        "Path(sys.argv[1]).open('a').write(json.dumps(asked['messages'][-1]['content']) + '\\n')\n"
        "print('```python\\nimport numpy as np\\ndef solver(u0_batch, t_coordinate, beta):\\n'\n"
        "      '    return u0_batch[:, None] * np.cos(t_coordinate[:, None])\\n```')\n"
    )
    models = tmp_path / "resources" / "models"
    models.mkdir(parents=True)
    (models / "mine.yaml").write_text(
        "name: mine\nkind: command\ndescription: A command.\ncontext: 100000\n"
        "sampling: {temperature: 0.7, max_tokens: 4000}\n"
        f"options: {{command: '{sys.executable} {answers} {tmp_path / 'asked.txt'}'}}\n"
    )
    code = f"""
import sharp
few = {{"genesis": {{"candidates": 2}}, "evaluation": {{"validation": 2, "test": 2, "coarsen": 8}}}}
hint = {{"hint": "Use the exact shift."}}
run = sharp.run("advection", {str(tmp_path / "run")!r}, model="mine", method="hinted", options=hint, **few)
print(run.best, run.test_error is not None, sharp.replay(run.path).same)
"""
    variables = {"SHARP_DATA": str(tmp_path / "data"), "SHARP_RESOURCES": str(tmp_path / "resources")}
    done = python(installed, code, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["c001", "True", "True"]
    assert "Hint: Use the exact shift." in (tmp_path / "asked.txt").read_text()
    assert "hinted" in (tmp_path / "run" / "report.md").read_text()
    refused = python(installed, code.replace("Use the exact shift.", ""), **variables)
    assert "already holds a run" in refused.stderr
    hintless = code.replace('"Use the exact shift."', '""').replace("/run'", "/second'")
    assert "the method 'hinted' needs options.hint" in python(installed, hintless, **variables).stderr


BROKEN = """
import sharp, logging
logging.basicConfig(format="%(message)s")
from sharp.solvers.methods import all_methods, load_method
print([method.name for method in all_methods()])
print(sharp.solve("heat-rod-two-ends", cross_check=False, accuracy=1e-3).verdict.status)
"""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("sharp_absent:Method", "ModuleNotFoundError: No module named 'sharp_absent'"),
        ("broken_module:Method", "ZeroDivisionError"),
        ("half_module:Half", "TypeError: a numerical method has `resolution_sequence`"),
    ],
)
def test_a_broken_plug_in_is_reported_by_its_package_and_leaves_the_others(
    value: str, reason: str, tmp_path: Path
) -> None:
    record(tmp_path, "sharp-broken", {"sharp.solvers": {"broken": value}})
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    (tmp_path / "half_module.py").write_text(
        "class Half:\n    name = 'half'\n    def unsupported_reason(self, system): return None\n"
    )
    done = python(tmp_path, BROKEN)
    assert done.returncode == 0, done.stderr
    names, status = done.stdout.splitlines()
    assert "chebyshev" in names
    assert "broken" not in names
    assert status == "verified"
    told = f"the numerical method 'broken' of the package sharp-broken ({value}) cannot be loaded: {reason}"
    assert done.stderr.count(told) == 1
    asked = python(tmp_path, "from sharp.solvers.methods import load_method; load_method('broken')")
    assert told in asked.stderr
    assert "ConfigurationError" in asked.stderr


def test_a_built_in_name_is_not_replaced(tmp_path: Path) -> None:
    record(tmp_path, "sharp-thief", {"sharp.solvers": {"fd": "thief:Thief"}})
    done = python(tmp_path, BROKEN)
    assert done.returncode == 0, done.stderr
    assert "'fd'" in done.stdout
    assert (
        "the numerical method 'fd' of the package sharp-thief is not used: there is one of that name in pde-sharp"
        in done.stderr
    )
