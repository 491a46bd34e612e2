"""The parts of the job bench that only think: verdicts, what was in flight, and its transcripts."""

from __future__ import annotations

import pytest

from compaction.core.messages import decode_message
from compaction.core.wire import api_messages
from ops.bench.provider import most_in_flight
from ops.bench.transcripts import transcript
from ops.bench.verdicts import least, most, told


def test_a_bound_that_is_reached_exactly_is_met() -> None:
    assert most("ms", 10.0, 10).is_met
    assert least("jobs/s", 100.0, 100).is_met
    assert not most("ms", 10.1, 10).is_met
    assert not least("jobs/s", 99.9, 100).is_met


def test_one_broken_promise_fails_the_bench_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert told([most("ms per job", 9, 10), least("jobs per second", 51, 100, "others used 0.70 cores")]) == 1
    assert "NOT MET  jobs per second: 51, bound 100  (others used 0.70 cores)" in capsys.readouterr().out
    assert told([most("ms per job", 9, 10)]) == 0


def test_calls_that_overlap_are_in_flight_together() -> None:
    calls: list[dict[str, float | None]] = [
        {"at": 0.0, "ended_at": 2.0},
        {"at": 1.0, "ended_at": 3.0},
        {"at": 2.5, "ended_at": None},
    ]
    assert most_in_flight(calls) == 2
    assert most_in_flight([]) == 0


@pytest.mark.parametrize("size_bytes", [400_000, 1_000_000])
def test_a_transcript_has_the_wanted_size_and_is_a_valid_conversation(size_bytes: int) -> None:
    bodies = transcript(3, messages=200, size_bytes=size_bytes)
    assert len(bodies) == 200
    assert abs(sum(map(len, bodies)) - size_bytes) <= size_bytes // 100
    messages = [decode_message(body) for body in bodies]
    sent = api_messages(messages)
    assert sent[0]["role"] == "user"
    blocks = [block for message in sent if isinstance(message["content"], list) for block in message["content"]]
    used = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(used) == len(set(used)) > 0


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert transcript(5, messages=50, size_bytes=80_000) == transcript(5, messages=50, size_bytes=80_000)
    assert transcript(5, messages=50, size_bytes=80_000) != transcript(6, messages=50, size_bytes=80_000)
