"""The book of jobs: what it says after each event, and after a writer was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc.slurm.book import Book, JobBook, read_book


def test_a_book_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_book(tmp_path / "jobs.jsonl") == Book()


def test_a_submission_from_intent_to_end(tmp_path: Path) -> None:
    with JobBook(tmp_path / "jobs.jsonl") as book:
        book.intend("a-e1", "evaluate", elements=3, gpus=2, purpose="x")
        assert [s.token for s in book.book.unanswered] == ["a-e1"]
        book.submitted("a-e1", "17")
        assert [s.job_id for s in book.book.open] == ["17"]
        book.ended("a-e1", "COMPLETED", 1800.0)
        book.exclude("n7", "two jobs were lost there")
    known = read_book(tmp_path / "jobs.jsonl")
    (submission,) = known.submissions.values()
    assert (submission.ended, submission.gpu_hours) == ("COMPLETED", 1.0)
    assert (known.open, known.unanswered) == ((), ())
    assert known.excluded == {"n7": "two jobs were lost there"}


def test_a_book_cut_off_anywhere_keeps_its_whole_lines_and_takes_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    with JobBook(path) as book:
        for number in range(3):
            book.intend(f"a-e{number}", "evaluate")
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        whole = data[:size].count(b"\n")
        with JobBook(path) as book:
            book.intend("a-s1", "server")
        assert [*read_book(path).submissions] == [*(f"a-e{number}" for number in range(whole)), "a-s1"]


def test_a_writer_that_may_no_longer_write_leaves_no_line(tmp_path: Path) -> None:
    def fenced() -> None:
        raise RuntimeError("another one steers")

    with JobBook(tmp_path / "jobs.jsonl", fenced) as book, pytest.raises(RuntimeError, match="another"):
        book.intend("a-e1", "evaluate")
    assert read_book(tmp_path / "jobs.jsonl") == Book()
