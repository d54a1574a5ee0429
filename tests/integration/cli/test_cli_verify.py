"""`sharp verify`: solutions from elsewhere are verified, or not, and what is no solution is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from sharp.cli.verify import verify
from sharp.errors import InputError, SpecificationError
from tests.helpers.problems.specifications import specification

# u_t = alpha*u_xx on 0 < x < 1, kept at 0 and 2, from sin(pi*x) + 2*x.
EXACT = "u = 2*x + exp(-alpha*pi**2*t)*sin(pi*x)"


@pytest.fixture
def rod(tmp_path: Path) -> str:
    (tmp_path / "rod.yaml").write_text(specification("heated-rod"))
    return str(tmp_path / "rod.yaml")


def called(*arguments: str) -> Result:
    return CliRunner().invoke(verify, arguments)


@pytest.mark.parametrize(("claim", "outcome", "code"), [(EXACT, "verified", 0), ("u=2*x", "failed", 3)])
def test_an_expression_is_judged(rod: str, claim: str, outcome: str, code: int) -> None:
    done = called(rod, "--claim", claim, "--accuracy", "1e-4", "--json")
    found = json.loads(done.stdout)
    assert (found["outcome"], done.exit_code) == (outcome, code)
    assert (found["error"] <= 1e-4) == (outcome == "verified")


def test_a_file_is_judged_and_a_hole_in_it_is_seen(rod: str, tmp_path: Path) -> None:
    x, t = np.linspace(0, 1, 21), np.array([0.0, 0.05, 0.1])
    alpha = 0.1
    u = 2 * x + np.exp(-alpha * np.pi**2 * t[:, None]) * np.sin(np.pi * x)
    np.savez(tmp_path / "good.npz", x=x, t=t, u=u)
    u[1, 7] = np.nan
    np.savez(tmp_path / "bad.npz", x=x, t=t, u=u)
    assert called(rod, str(tmp_path / "good.npz"), "--accuracy", "1e-4").exit_code == 0
    bad = called(rod, str(tmp_path / "bad.npz"), "--accuracy", "1e-4", "--json")
    assert (bad.exit_code, json.loads(bad.stdout)["error"]) == (3, None)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none.npz"], "none.npz: cannot be read: No such file"),
        (["rod.yaml"], "valid endings: .nc, .npz"),
        (["text.npz"], "text.npz: expected arrays"),
        (["--claim", "w=1"], "there is no field 'w'"),
        (["--claim", "u=sinus(x)"], "sinus"),
    ],
)
def test_what_is_no_solution_is_refused(rod: str, tmp_path: Path, arguments, complaint: str) -> None:
    (tmp_path / "text.npz").write_text("no arrays")
    given = [word if word.startswith(("--", "w", "u")) else str(tmp_path / word) for word in arguments]
    refused = called(rod, *given).exception
    assert isinstance(refused, InputError | SpecificationError)
    assert complaint in str(refused)


@pytest.mark.parametrize("arguments", [[], ["a.npz", "--claim", "u=1"], ["--claim", "u"]])
def test_either_a_file_or_claims_are_expected(rod: str, arguments: list[str]) -> None:
    done = called(rod, *arguments)
    assert (done.exit_code, "expected" in done.stderr) == (2, True)
