from __future__ import annotations

import io

import pytest

from compaction import formats
from compaction.errors import InvalidRequest
from tests.unit.formats.log import Log


def test_the_door_finds_the_format_itself() -> None:
    log = Log()
    log.user()
    assert formats.read(log.file()).report.format == "claude_code"
    assert formats.read(io.BytesIO(b'{"role":"user","content":"x"}')).report.format == "anthropic_messages"


def test_a_named_format_is_taken_at_its_word() -> None:
    with pytest.raises(InvalidRequest, match="holds no conversation"):
        formats.read(io.BytesIO(b'{"role":"user","content":"x"}'), format_name="claude_code")


def test_a_format_that_we_do_not_know_is_named_in_the_refusal() -> None:
    with pytest.raises(InvalidRequest, match="claude_code, anthropic_messages, openai_chat") as caught:
        formats.read(io.BytesIO(b"{}"), format_name="word")
    assert caught.value.fields[0][0] == "format"


def test_progress_runs_over_all_readings_to_the_end() -> None:
    log = Log()
    for _ in range(3):
        log.user("x" * 1_000_000)
    told: list[tuple[int, int]] = []
    transcript = formats.read(log.file(), on_progress=lambda done, total: told.append((done, total)))
    size = len(log.data)
    assert told
    assert all(done <= size for done, _ in told)
    assert len(list(transcript.bodies())) == 3
    assert told[-1] == (2 * size, 3 * size)
    assert len(list(transcript.bodies())) == 3
    assert told[-1] == (3 * size, 3 * size)
    assert sorted(told) == told


def test_bodies_can_be_read_twice() -> None:
    log = Log()
    log.user()
    transcript = formats.read(log.file())
    assert list(transcript.bodies()) == list(transcript.bodies())
