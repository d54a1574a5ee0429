"""`sharp data` for a specification of no known family."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.helpers.cli.sharp_command import Sharp
from tests.helpers.problems.specifications import specification

ROD = specification("cold-rod")


def test_data_of_a_specification_are_made_found_again_and_audited(sharp: Sharp, tmp_path: Path) -> None:
    path = tmp_path / "rod.yaml"
    path.write_text(ROD)
    made = sharp("data", "make", path, "--samples", "2", "--json")
    facts = json.loads(made.stdout)
    assert facts["file"] == facts["reference"]
    assert re.search(r"-n2-secret-[0-9a-f]{8}-reference\.hdf5$", facts["file"])
    assert "data: reference solution of cold-rod (2/2)" in made.stderr
    again = sharp("data", "make", path, "--samples", "2", "--kind", "reference")
    assert again.stdout.splitlines() == [f"{name}: {value}" for name, value in facts.items()]
    assert again.stderr == ""
    audited = sharp("data", "audit", facts["file"], "--problem", path)
    assert "The data are the self-converged solution itself, whose error is estimated at" in audited.stdout


def test_what_cannot_be_made_or_imported_is_refused(sharp: Sharp, tmp_path: Path) -> None:
    path = tmp_path / "rod.yaml"
    path.write_text(ROD)
    published = sharp("data", "make", path, "--samples", "2", "--kind", "pdebench")
    assert (published.returncode, published.stdout) == (2, "")
    assert "found the family other; valid kinds: reference" in published.stderr
    out = tmp_path / "out.hdf5"
    assert "use a file as it is, without the reference solution (evaluation.data)" in sharp.fails(
        2, "data", "import", path, "--problem", path, "--output", out
    )
    assert not out.exists()
