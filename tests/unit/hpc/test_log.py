from __future__ import annotations

import random
from pathlib import Path

import pytest

from hpc.journal import EffectRecord, decode_event, encode_event
from hpc.journal.journal_file import effect_event, read_journal
from hpc.journal.records import FORMAT

PROMPT = "a prompt that every request repeats " * 20


def opening(epoch: int, seq: int = 0) -> bytes:
    return encode_event({"event": "open", "format": FORMAT, "software": "0.0.1", "epoch": epoch, "seq": seq})


def record(seq: int, epoch: int = 1, text: str = "reply") -> EffectRecord:
    meta = {"started": "2026-01-01T00:00:00+00:00", "seconds": 0.5}
    return EffectRecord(seq, epoch, "chat", f"a/{seq}", "key", {"prompt": PROMPT}, {"text": text}, meta)


def written(path: Path, *records: EffectRecord) -> list[bytes]:
    known: set[str] = set()
    lines = [opening(1)]
    for item in records:
        event, new = effect_event(item, known)
        known |= new
        lines.append(encode_event(event))
    path.write_bytes(b"".join(lines))
    return lines


def test_what_was_written_is_read(tmp_path: Path) -> None:
    records = [record(k) for k in range(5)]
    lines = written(tmp_path / "j", *records)

    log = read_journal(tmp_path / "j")

    assert list(log.effects.values()) == records
    assert (log.next_seq, log.epoch, log.torn, log.damaged, log.missing) == (5, 1, 0, (), frozenset())
    assert log.size == sum(map(len, lines))


def test_a_text_shared_by_many_requests_is_in_the_file_once(tmp_path: Path) -> None:
    written(tmp_path / "j", *(record(k) for k in range(5)))

    assert (tmp_path / "j").read_text().count("a prompt that every request repeats") == 20


def test_a_file_cut_anywhere_holds_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = written(path, *(record(k) for k in range(4)))
    data, edges = path.read_bytes(), [sum(map(len, lines[:k])) for k in range(len(lines) + 1)]

    for size in range(edges[2], len(data) + 1):
        path.write_bytes(data[:size])
        log = read_journal(path)
        whole = max(k for k, edge in enumerate(edges) if edge <= size)
        assert len(log.effects) == whole - 1
        assert (log.size, log.torn) == (edges[whole], size - edges[whole])
        assert not log.damaged


def test_a_flipped_byte_never_passes_for_data(tmp_path: Path) -> None:
    path, rng = tmp_path / "j", random.Random(3)
    written(path, *(record(k) for k in range(6)))
    whole, data = read_journal(path), path.read_bytes()

    for _ in range(300):
        at = rng.randrange(len(data))
        flipped = bytes([data[at] ^ (1 << rng.randrange(8))])
        path.write_bytes(data[:at] + flipped + data[at + 1 :])
        log = read_journal(path)
        assert log.damaged or log.torn
        assert all(whole.effects[where] == effect for where, effect in log.effects.items())


def test_a_damaged_line_takes_with_it_those_that_need_its_texts(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = written(path, *(record(k) for k in range(3)))
    lines[1] = lines[1].replace(b"a/0", b"a/7")
    path.write_bytes(b"".join([*lines, opening(2, seq=3)]))

    log = read_journal(path)

    assert log.damaged == (2, 3, 4)
    assert log.missing == {0, 1, 2}


def test_a_bad_last_line_is_a_torn_tail_even_with_its_newline(tmp_path: Path) -> None:
    path = tmp_path / "j"
    lines = written(path, record(0), record(1))
    path.write_bytes(b"".join(lines[:2]) + lines[2][:40] + b"\x00" * 30 + b"\n")

    log = read_journal(path)

    assert list(log.effects) == ["a/0"]
    assert (log.size, log.torn, log.damaged) == (sum(map(len, lines[:2])), 71, ())


def test_late_lines_of_an_older_epoch_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, record(0))
    newer = encode_event(effect_event(record(1, epoch=2, text="ours"), set())[0])
    late = encode_event(effect_event(record(1, epoch=1, text="stale"), set())[0])
    with path.open("ab") as file:
        file.write(opening(2, seq=1) + late + newer + late)

    log = read_journal(path)

    assert log.effects["a/1"].reply == {"text": "ours"}
    assert (log.epoch, log.late, log.next_seq) == (2, 2, 2)


@pytest.mark.parametrize("line", [b"", b"x", b"00000000", b"00000000 {}", b"\xff\xfe", b"zzzzzzzz {}"])
def test_a_line_without_a_fitting_checksum_is_no_event(line: bytes) -> None:
    assert decode_event(line) is None
