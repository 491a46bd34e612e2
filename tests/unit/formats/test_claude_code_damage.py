from __future__ import annotations

import io

import pytest

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, decode_message
from compaction.errors import InvalidRequest, TooLarge
from compaction.formats import claude_code, scan
from compaction.formats.report import DuplicateRow
from compaction.formats.transcript import Transcript
from tests.unit.formats.log import Log, encoded


def read(log: Log) -> tuple[Transcript, list[Message]]:
    transcript = claude_code.read(log.file())
    return transcript, [decode_message(body) for body in transcript.bodies()]


def texts(messages: list[Message]) -> list[Json]:
    return [one.content if isinstance(one.content, str) else one.content[0].get("text") for one in messages]


def test_a_row_that_was_written_twice_counts_once() -> None:
    log = Log()
    log.user()
    log.assistant("Done.")
    log.lines.append(log.lines[-1].replace(b"Done.", b"Done again."))
    transcript, messages = read(log)
    assert texts(messages)[1:] == ["Done."]
    assert transcript.report.duplicate_uuid_rows == (DuplicateRow("assistant", (2, 3)),)


def test_a_line_of_two_glued_rows_gives_both() -> None:
    log = Log()
    log.user("first")
    log.assistant("second")
    log.lines = [log.lines[0] + log.lines[1]]
    transcript, messages = read(log)
    assert texts(messages) == ["first", "second"]
    assert transcript.report.to_dict()["malformed"] == {
        "line_count": 1,
        "lines": [1],
        "objects_recovered": 2,
        "chars_lost": 0,
        "oversized_lines": 0,
        "invalid_utf8_lines": 0,
    }


def test_a_row_behind_a_torn_one_is_saved_but_never_the_inside_of_the_torn_one() -> None:
    log = Log()
    log.user("first")
    inside = encoded({"type": "user", "uuid": "inside", "message": {"content": "a sub-agent's words"}})
    torn = b'{"parentUuid":"row-1","type":"progress","data":{"message":' + inside
    log.line(torn)
    log.assistant("second")
    log.lines = [log.lines[0], torn + log.lines[2]]
    transcript, messages = read(log)
    assert texts(messages) == ["first", "second"]
    assert transcript.report.malformed.objects_recovered == 1
    assert transcript.report.malformed.chars_lost == len(torn)


@pytest.mark.parametrize(
    "damage", [b"\x00" * 300, b"not json", b'{"type":"user","uu', b"[]", b"\xff\xfe\xfd", b'{"a":' + b"[" * 9000]
)
def test_a_damaged_line_costs_itself_and_nothing_else(damage: bytes) -> None:
    log = Log()
    log.user("before")
    log.line(damage)
    log.assistant("after")
    transcript, messages = read(log)
    assert texts(messages) == ["before", "after"]
    assert transcript.report.malformed.lines == (2,)
    assert transcript.report.malformed.chars_lost > 0


def test_a_file_of_another_system_reads_alike() -> None:
    log = Log()
    log.user("with a mark")
    log.assistant("and returns")
    plain = list(claude_code.read(log.file()).bodies())
    odd = b"\xef\xbb\xbf" + log.data.replace(b"\n", b"\r\n") + b"\r\n\r\n"
    transcript = claude_code.read(io.BytesIO(odd))
    assert list(transcript.bodies()) == plain
    assert transcript.report.lines == 2
    assert transcript.report.malformed.line_count == 0


def test_the_last_line_may_lack_its_line_feed_or_its_end() -> None:
    log = Log()
    log.user("kept")
    log.assistant("cut off")
    assert len(list(claude_code.read(io.BytesIO(log.data.rstrip(b"\n"))).bodies())) == 2
    transcript = claude_code.read(io.BytesIO(log.data[:-9]))
    assert len(list(transcript.bodies())) == 1
    assert transcript.report.malformed.lines == (2,)


def test_broken_utf_8_is_replaced_in_its_row_alone() -> None:
    log = Log()
    log.user("caf@")
    log.assistant("café")
    log.lines[0] = log.lines[0].replace(b"@", b"\xe9")
    transcript, messages = read(log)
    assert texts(messages) == ["caf\ufffd", "café"]
    assert transcript.report.malformed.invalid_utf8_lines == 1
    assert transcript.report.malformed.line_count == 0


def test_half_characters_nul_and_separators_survive_in_the_body() -> None:
    content = b'"half \\ud83d, nul \\u0000, line \xe2\x80\xa8 end"'
    log = Log()
    log.line(b'{"type":"user","uuid":"u","parentUuid":null,"message":{"role":"user","content":' + content + b"}}")
    (body,) = claude_code.read(log.file()).bodies()
    assert content in body
    assert decode_message(body).content == "half \ud83d, nul \x00, line \u2028 end"


def test_a_line_too_long_to_be_a_row_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    log.user("short")
    log.assistant("x" * 5000)
    log.assistant("short again", parentUuid="row-1")
    monkeypatch.setattr("compaction.formats.lines.MAX_LINE_BYTES", 2000)
    transcript, messages = read(log)
    assert texts(messages) == ["short", "short again"]
    assert transcript.report.malformed.oversized_lines == 1


def test_more_rows_than_memory_should_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    for _ in range(4):
        log.user()
    monkeypatch.setattr(scan, "MAX_ROWS", 3)
    with pytest.raises(TooLarge, match="more than 3 rows"):
        claude_code.read(log.file())


def test_rows_whose_content_is_no_content_are_skipped_and_counted() -> None:
    log = Log()
    log.user()
    log.user(None)
    log.user([{"no": "type"}])
    log.row("user")
    transcript, messages = read(log)
    assert len(messages) == 1
    assert transcript.report.unusable_rows_skipped == 3


@pytest.mark.parametrize(
    "line", [{"type": "summary", "summary": "A title", "leafUuid": "x"}, {"type": "user", "message": {"content": None}}]
)
def test_a_log_without_a_message_is_refused(line: Json) -> None:
    with pytest.raises(InvalidRequest, match="holds no conversation"):
        claude_code.read(io.BytesIO(encoded(line)))


def test_a_file_that_changes_under_the_import_is_noticed() -> None:
    log = Log()
    log.user("a text that is long enough")
    file = log.file()
    transcript = claude_code.read(file)
    file.seek(0)
    file.write(b"#" * 40)
    with pytest.raises(InvalidRequest, match="has changed") as caught:
        list(transcript.bodies())
    assert "long enough" not in str(caught.value)


def test_the_report_never_holds_content() -> None:
    log = Log()
    log.user("SECRET-WORDS")
    log.line(b"SECRET-GARBAGE")
    log.line(encoded({"type": "SECRET TYPE", "uuid": "x"}))
    transcript = claude_code.read(log.file())
    assert b"SECRET" not in jsonbytes.encode(transcript.report.to_dict())
    assert "SECRET" not in repr(transcript)
