"""Scratch folders go away whatever has been left in them."""

from __future__ import annotations

import pytest

from sharp.evaluation.scratch import remove_tree, scratch_folder
from tests.helpers.evaluation.deep_folders import nest


def test_a_scratch_folder_is_new_and_goes_away(tmp_path):
    with scratch_folder("x-", tmp_path) as folder:
        assert list(folder.iterdir()) == []
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_folders_deeper_than_any_path_are_removed(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    nest(top, 1200)
    remove_tree(top)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed(tmp_path):
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.mkdir()
    top.mkdir()
    (outside / "kept").write_text("x")
    (top / "folder").symlink_to(outside)
    (top / "file").symlink_to(outside / "kept")
    remove_tree(top)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").read_text() == "x"


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o500])
def test_permissions_do_not_matter(tmp_path, mode):
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").write_text("x")
    for folder in (top / "a" / "b", top / "a", top):
        folder.chmod(mode)
    remove_tree(top)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_no_error(tmp_path):
    remove_tree(tmp_path / "nothing")
