"""Hooks of the site's build: pictures made by examples, the project's own pages, links out of the folder `docs`."""

from __future__ import annotations

import os.path
import re
import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PROJECT = {"ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"}
HOME = {"README.md": "index.md"}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages of the project, and the picture of the first page, drawn by an example."""
    for name in sorted(PROJECT):
        files.append(File.generated(config, f"project/{name}", content=(ROOT / name).read_text()))
    with TemporaryDirectory() as folder:
        draw = runpy.run_path(str(ROOT / "examples" / "picture_for_a_page.py"))["draw"]
        picture = Path(folder) / "rod.svg"
        draw(picture)
        files.append(File.generated(config, "pictures/rod.svg", content=picture.read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Let links to files of the checkout lead to their page, or become the file's name where there is none."""
    where = page.file.src_uri
    folder = ROOT / Path(where).name if where.startswith("project/") else DOCS / where

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = os.path.relpath(os.path.normpath(folder.parent / target), ROOT)
        if path.startswith("docs/"):
            inside = path.removeprefix("docs/")
        elif path in PROJECT:
            inside = f"project/{path}"
        elif path in HOME:
            inside = HOME[path]
        else:
            return f"{text} (`{path}`)" if (ROOT / path).exists() else found[0]
        return f"[{text}]({os.path.relpath(inside, Path(where).parent)}{anchor})"

    return _LINK.sub(link, markdown)
