from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped]  # it ships no types
import pytest
import zstandard

from compaction.cli.archive import ArchiveProblem, Piece, pieces

TURNS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
LINES = b"".join(json.dumps(turn).encode() + b"\n" for turn in TURNS)
PACKERS: dict[str, Any] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def conversation(**named: str) -> bytes:
    return json.dumps(named | {"messages": TURNS}).encode() + b"\n"


def read(source: Path | str, scratch: Path) -> list[tuple[Piece, bytes]]:
    """The pieces with their bytes, each forgotten as the command does."""
    scratch.mkdir(exist_ok=True)
    found = []
    for piece in pieces(str(source), scratch):
        found.append((piece, piece.path.read_bytes()))
        piece.forget()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "archive"
    made.mkdir()
    return made


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_packed_file_is_unpacked_into_a_file_that_goes_away(folder: Path, tmp_path: Path, suffix: str) -> None:
    (folder / f"one.jsonl{suffix}").write_bytes(PACKERS[suffix](LINES))
    ((piece, data),) = read(folder, tmp_path / "scratch")
    assert data == LINES
    assert piece.session_id is None
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_plain_file_is_read_where_it_lies_and_stays(folder: Path, tmp_path: Path) -> None:
    (folder / "one.jsonl").write_bytes(LINES)
    ((piece, _),) = read(folder, tmp_path / "scratch")
    assert piece.path == folder / "one.jsonl"
    assert piece.path.exists()


def test_each_line_that_is_a_conversation_is_a_session_with_its_own_name(folder: Path, tmp_path: Path) -> None:
    """A line without a name gets none here: the import makes one of its content, as it does of whole files."""
    lines = conversation(id="ab") + b"\n" + conversation(session_id="s:1") + conversation() + conversation(id="")
    (folder / "day.jsonl").write_bytes(lines)
    found = read(folder / "day.jsonl", tmp_path / "scratch")
    assert [piece.session_id for piece, _ in found] == ["ab", "s:1", None, None]
    assert [json.loads(data)["messages"] for _, data in found] == [TURNS] * 4
    assert list((tmp_path / "scratch").iterdir()) == []


def test_names_that_an_id_cannot_hold_stay_apart(folder: Path, tmp_path: Path) -> None:
    """What does not fit is replaced or cut, and a digest of the whole name is set behind it."""
    names = ["a b", "a/b", "a-b", "x" * 200, "x" * 201, "x" * 202]
    (folder / "day.jsonl").write_bytes(b"".join(conversation(id=name) for name in names))
    ids = [piece.session_id or "" for piece, _ in read(folder / "day.jsonl", tmp_path / "scratch")]
    assert len(set(ids)) == len(names)
    assert (ids[2], ids[3]) == ("a-b", "x" * 200)
    assert all(re.fullmatch(r"[\w.:-]{1,200}", one) for one in ids)
    assert ids[0].startswith("a-b-")


def test_one_conversation_alone_is_one_file(folder: Path, tmp_path: Path) -> None:
    (folder / "one.json").write_bytes(conversation(id="x"))
    ((piece, _),) = read(folder, tmp_path / "scratch")
    assert (piece.path, piece.session_id) == (folder / "one.json", None)


def test_hidden_files_and_other_kinds_are_left_alone(folder: Path, tmp_path: Path) -> None:
    (folder / ".git").mkdir()
    for name in (".git/a.jsonl", ".b.jsonl", "notes.txt", "packed.gz", "taken.jsonl"):
        (folder / name).write_bytes(LINES)
    assert [Path(piece.label).name for piece, _ in read(folder, tmp_path / "scratch")] == ["taken.jsonl"]


def test_a_folder_below_a_hidden_one_may_be_named(tmp_path: Path) -> None:
    hidden = tmp_path / ".claude" / "projects"
    hidden.mkdir(parents=True)
    (hidden / "one.jsonl").write_bytes(LINES)
    assert len(read(hidden, tmp_path / "scratch")) == 1


def test_an_address_names_the_same_files(folder: Path, tmp_path: Path) -> None:
    (folder / "one.jsonl").write_bytes(LINES)
    assert len(read(f"file://{folder}", tmp_path / "scratch")) == 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere-at-all", "There are no transcripts"),
        ("gopher-x://a/b", "no address that can be read"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(source: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveProblem, match=words):
        read(source, tmp_path / "scratch")


def test_a_damaged_file_is_named_and_the_others_are_read(folder: Path, tmp_path: Path) -> None:
    (folder / "one.jsonl.gz").write_bytes(gzip.compress(LINES)[:-12])
    (folder / "two.jsonl.gz").write_bytes(gzip.compress(LINES))
    (tmp_path / "scratch").mkdir()
    damaged, whole = pieces(str(folder), tmp_path / "scratch")
    assert "one.jsonl.gz cannot be read" in (damaged.problem or "")
    assert whole.problem is None


def names(count: int) -> bytes:
    return b"".join(conversation(id=f"s-{number}") for number in range(count))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_more_sessions_than_a_run_may_name_are_refused_before_the_first(
    folder: Path, tmp_path: Path, suffix: str
) -> None:
    """20,000 are taken; a file of their own and one more are not, whether the file of many is packed or not."""
    pack = PACKERS.get(suffix, bytes)
    (folder / f"many.jsonl{suffix}").write_bytes(pack(names(20_000)))
    (tmp_path / "scratch").mkdir()
    first = next(pieces(str(folder), tmp_path / "scratch"))
    assert first.session_id == "s-0"
    (folder / "last.jsonl").write_bytes(LINES)
    with pytest.raises(ArchiveProblem, match="more than 20,000 sessions"):
        next(pieces(str(folder), tmp_path / "scratch"))


def test_a_file_from_far_away_is_refused_when_it_turns_out_too_large(tmp_path: Path) -> None:
    """Its sessions are counted as they come: fetching it twice would cost its owner."""
    (tmp_path / "scratch").mkdir()
    place = fsspec.filesystem("memory")
    place.pipe("/far/many.jsonl", names(20_001))
    found = pieces("memory://far", tmp_path / "scratch")
    for _ in range(20_000):
        next(found).forget()
    with pytest.raises(ArchiveProblem, match="more than 20,000 sessions"):
        next(found)
    place.rm("/far", recursive=True)
