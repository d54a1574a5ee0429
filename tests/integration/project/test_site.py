"""The site builds without a warning, and every link in it leads somewhere, to the place it names."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.helpers import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as users build it."""
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        ["sh", str(ROOT / "tools" / "site.sh"), "--site-dir", str(folder)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder.parent), "PYTHON_BIN": sys.executable},
        cwd=folder.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Places(HTMLParser):
    """The names of a page's places, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        # Pages that are not found may be asked for anywhere, and have absolute links.
        self.links |= {given[name] or "" for name in ("href", "src") if name in given}


def test_links_lead_to_pages_and_places_that_exist(site: Path) -> None:
    pages = {page: Places(page.read_text()) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 40
    broken = []
    for page, places in pages.items():
        for link in places.links:
            target, _, place = link.partition("#")
            if ":" in target:
                continue
            path = (page.parent / unquote(target)).resolve() if target else page
            known = path in pages and place and unquote(place) not in {*pages[path].ids, "__tabbed"}
            if not path.exists() or known:
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert '<script src="http' not in text, page
        assert '<link rel="stylesheet" href="http' not in text, page


def test_the_first_page_has_a_picture_that_the_code_drew(site: Path) -> None:
    assert 'src="pictures/rod.svg"' in (site / "index.html").read_text()
    picture = (site / "pictures" / "rod.svg").read_text()
    assert picture.count("<path") > 50
    assert "matplotlib" in picture


def test_docstrings_of_the_face_are_on_the_page_of_functions(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text()
    for name in ("api.solve", "api.verify", "api.evaluate", "api.run", "problems.loader.load_problem"):
        assert f'id="sharp.{name}"' in page, name
    assert "Raises" in page
    assert 'id="sharp.solvers.solution.Solution.quantity"' in page
