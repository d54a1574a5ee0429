"""Documentation that is generated stays what its generator writes, and links lead somewhere."""

import importlib.util
import re
import subprocess

import pytest

from tests.helpers import ROOT

NAMING = ["sharp", "hpc", "tests", "tools", "benchmarks", "examples", "data", "prompts", "*.md"]
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("name", ["reference/cli.md", "reference/configuration.md", "reference/feedback.md"])
def test_generated_parts_are_up_to_date(name):
    spec = importlib.util.spec_from_file_location("docs_tool", ROOT / "tools" / "docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / name).read_text() == module.page(name), "run: python tools/docs.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        # Pictures are drawn when the site is built, which tests its links to them (test_site.py).
        if "://" not in target and not target.startswith("pictures/"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_named_in_code_exist():
    """Docstrings and messages send readers to pages; each is there."""
    listed = subprocess.run(
        ["git", "grep", "-hoE", r"\bdocs/[a-z/-]+\.md", "--", *NAMING], cwd=ROOT, capture_output=True
    )
    named = set(listed.stdout.decode().split())
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
