"""How many tokens a conversation takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.messages import BOUNDARY_KIND, Message, message_from
from compaction.core.tokens import (
    SessionTokens,
    estimate_bytes,
    estimate_message,
    estimate_messages,
    estimate_overhead,
    estimate_text,
    session_tokens,
)
from tests.unit.core.oracle import CASES, oracle
from tests.unit.core.samples import assistant, image, result, text, thinking, usage, use, user
from tests.unit.core.strategies import histories

TOOLS = [{"name": "Read"}]  # 17 characters of JSON: 8 letters, 9 others
PROSE = "some plain words of prose "  # 26 characters


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        ("", 0),
        ("word", 1),
        ("words", 2),
        (PROSE * 4, 26),
        ("1234", 3),
        ("f(x) = {1};\n", 7),  # two letters, two spaces, eight others: 4 + 8 × 3 = 28 quarters
        ("检查日志", 4),
        ("あいう가나🙂", 6),
        ("naïve", 2),  # 4 letters and an accent: 6 quarters
        ("привет", 3),
        ("word 检", 3),  # 5 + 4 quarters
        ("\ud83d", 1),
    ],
)
def test_text_is_estimated_by_its_script(words: str, tokens: int) -> None:
    assert estimate_text(words) == tokens


@settings(deadline=None)
@given(st.text(), st.text())
def test_a_longer_text_never_has_fewer_tokens(one: str, two: str) -> None:
    together = estimate_text(one + two)
    assert together >= max(estimate_text(one), estimate_text(two))
    assert together <= estimate_text(one) + estimate_text(two)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user("word"), 4 + 1),
        (user(text("word"), text("word")), 10),
        (user({"type": "text", "text": None}), 4),
        (assistant(use("t1", inputs="word")), 60 + 1),
        (assistant(use("t1")), 60 + 2),  # "{}"
        (user(result("t1", "word")), 20 + 1),
        (user(result("t1", [text("word"), image(), "word"])), 20 + 5 + 1_600 + 1),
        (user(result("t1", None)), 20),
        (user(result("t1", {"a": 1})), 20 + 5),  # {"a":1}: one letter, six others: 19 quarters
        (user(result("t1", [{"type": "tool_reference", "tool_name": "Read"}])), 20 + 19),  # 29 and 15: 74 quarters
        (user(image(data="A" * 1_000_000)), 1_600),
        (user({"type": "document", "source": {"type": "text", "data": "word"}}), 14),  # 16 and 13: 55 quarters
        (user({"type": "document", "source": {"type": "base64", "data": "A" * 9_999}}), 1_600),
        (assistant(thinking("word", "S" * 9_999)), 1),
        (assistant({"type": "redacted_thinking", "data": "S" * 9_999}), 0),
        (assistant({"type": "hologram"}), 20 + 9),  # {"type":"hologram"}: 12 letters, 7 others: 33 quarters
    ],
)
def test_messages_are_estimated_block_by_block(message: Message, tokens: int) -> None:
    assert estimate_message(message) == tokens


def test_messages_and_overhead_add_up() -> None:
    assert estimate_messages([user("word"), user("word")]) == 10
    assert estimate_overhead(None, None) == 0
    assert estimate_overhead("word", TOOLS) == 1 + 9
    assert estimate_overhead([text("word")], None) == estimate_overhead(None, [text("word")])


def test_bytes_are_those_of_the_content_as_json() -> None:
    assert estimate_bytes([user("é"), user(text("a"))]) == len('"é"'.encode()) + len(b'[{"type":"text","text":"a"}]')


def test_without_usage_everything_is_estimated() -> None:
    history = [user("word"), assistant("word")]
    assert session_tokens(history, system="word", tools=TOOLS) == SessionTokens(
        10 + 1 + 9, anchored=False, tail_tokens=20, ratio=1.0
    )


def test_usage_anchors_and_only_the_tail_is_estimated() -> None:
    history = [user("word"), assistant("word", usage=usage(1_000, output=50)), user("word")]
    assert session_tokens(history, system="word") == SessionTokens(1_055, anchored=True, tail_tokens=5, ratio=1.0)


def test_cache_reads_are_part_of_the_prompt() -> None:
    answer = message_from(
        {
            "role": "assistant",
            "content": "Done.",
            "usage": {
                "input_tokens": 1_200,
                "cache_read_input_tokens": 171_000,
                "cache_creation_input_tokens": 2_100,
                "output_tokens": 300,
            },
        }
    )
    assert session_tokens([user("go"), answer]).tokens == 174_600


def test_a_dummy_output_count_is_replaced_by_an_estimate() -> None:
    words = PROSE * 400  # 2,600 tokens and 4 around
    history = [user("go"), assistant(words, usage=usage(1_000, output=8))]
    assert session_tokens(history).tokens == 1_000 + 2_604
    assert session_tokens([user("go"), assistant("ok", usage=usage(1_000, output=8))]).tokens == 1_008
    assert session_tokens([user("go"), assistant(words, usage=usage(1_000, output=9))]).tokens == 1_009


def test_a_sub_agents_usage_and_size_do_not_count() -> None:
    history = [
        user("word"),
        assistant("word", usage=usage(1_000)),
        assistant(PROSE * 9_999, is_sidechain=True, usage=usage(190_000)),
    ]
    assert session_tokens(history).tokens == 1_010


def test_a_row_written_four_times_counts_once() -> None:
    rows = [user("word", uuid="u-1"), assistant("word", uuid="u-2")]
    assert session_tokens(rows * 4).tokens == 10


def test_usage_before_a_summary_is_stale_but_teaches_the_ratio() -> None:
    step = PROSE * 800  # 5,200 tokens and 4 around: a step of two messages is 10,408
    before = [message for n in range(3) for message in (assistant(step, usage=usage(20_000 + n * 20_816)), user(step))]
    after = [user("word", is_compact_summary=True), user("word")]
    assert session_tokens([*before, *after], system="word") == SessionTokens(
        2 * 11, anchored=False, tail_tokens=22, ratio=2.0
    )


def test_usage_of_what_a_compaction_kept_is_stale() -> None:
    marker = Message(role="system", content="", metadata={"kind": BOUNDARY_KIND, "covers_through_seq": 9})
    kept = [user("word", is_compact_summary=True), assistant("word", usage=usage(150_000))]
    assert session_tokens([marker, *kept, user("word", seq=10)]).tokens == 15
    answered = [marker, *kept, user("word", seq=10), assistant("word", usage=usage(30_000), seq=11)]
    assert session_tokens(answered).tokens == 30_010


def test_an_empty_session_has_no_tokens() -> None:
    assert session_tokens([]) == SessionTokens(0, anchored=False, tail_tokens=0, ratio=1.0)


THRESHOLD = 167_000  # DESIGN §3, window of 200,000


@pytest.mark.parametrize(
    ("case", "over"),
    [
        ("trigger-estimate-001", True),
        ("trigger-estimate-002", True),
        ("fixed-overhead-001", True),
        ("duplicate-uuid-001", False),
        ("sidechain-001", False),
    ],
)
def test_known_sessions_are_on_the_right_side_of_the_threshold(case: str, over: bool) -> None:
    checker = oracle()
    path: Path = CASES / f"{case}.json"
    full: dict[str, Any] = checker.expand(checker.load(path))
    session = full["session"]
    counted = session_tokens(
        [message_from(body) for body in full["messages"]], system=session.get("system"), tools=session.get("tools")
    )
    assert (counted.tokens >= THRESHOLD) is over


@settings(max_examples=100, deadline=None)
@given(histories())
def test_any_history_has_a_size(history: tuple[Message, ...]) -> None:
    counted = session_tokens(history, system="word")
    assert counted.tokens >= counted.tail_tokens >= 0
    assert 0.8 <= counted.ratio <= 4.0
    assert estimate_messages(history) >= 0
    assert estimate_bytes(history) >= 2 * len(history)
