"""`sharp neural` as a command: trained in one process, listed in another, and told what is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.helpers.cli.sharp_command import Sharp
from tests.helpers.problems.neural_problems import small_file


@pytest.fixture(scope="module")
def sharp(tmp_path_factory: pytest.TempPathFactory) -> Sharp:
    return Sharp(tmp_path_factory.mktemp("sharp"))


def test_published_rows_are_listed_by_name_with_their_sources(sharp: Sharp) -> None:
    done = sharp("neural", "list", "--problem", "advection")
    assert done.returncode == 0, done.stderr
    methods = re.findall(r"^advection: (.*), published error", done.stdout, flags=re.MULTILINE)
    assert methods == sorted(methods)
    assert done.stdout.count("  source ") == done.stdout.count("  setting ") == len(methods) > 3
    assert "burgers" not in done.stdout


def test_a_problem_that_is_not_there_is_named(sharp: Sharp) -> None:
    done = sharp("neural", "list", "--problem", "burger")
    assert done.returncode == 2
    assert "did you mean 'burgers'" in done.stderr


def test_steady_problems_are_refused_at_once(sharp: Sharp) -> None:
    done = sharp("neural", "train", "darcy")
    assert done.returncode == 2
    assert "one space dimension and time" in done.stderr


def test_without_the_extra_the_command_says_how_to_get_it(sharp: Sharp, tmp_path: Path) -> None:
    (tmp_path / "optax.py").write_text("raise ImportError('not here')")
    lacking = Sharp(sharp.folder, {"PYTHONPATH": str(tmp_path)})
    done = lacking.process("neural", "train", "advection")
    assert done.returncode == 2
    assert "pip install 'pde-sharp[neural]'" in done.stderr


def test_a_training_ends_with_a_row_that_is_listed(sharp: Sharp) -> None:
    pytest.importorskip("optax", reason="training needs the extra `neural`")
    small = small_file(sharp.folder, points=192)
    options = ("--samples", 20, "--epochs", 12, "--held-out", 3, "--output", "trained", "--json")
    done = sharp("neural", "train", small, *options)
    assert done.returncode == 0, done.stderr
    assert "epoch 12 of 12: error" in done.stderr
    made = json.loads(done.stdout)
    assert made["test"]["samples"] == [0, 3]
    listed = json.loads(sharp("neural", "list", "trained", "--problem", small, "--json").stdout)
    assert [row["test"]["nrmse"] for row in listed["trained"]] == [made["test"]["nrmse"]]
    text = sharp("neural", "list", "trained").stdout
    assert f"{made['test']['nrmse']:.3e} on the test samples" in text
