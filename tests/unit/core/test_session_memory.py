"""Session-memory compaction: the limits of what stays, from hand calculation, and its promises for any session."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import chronology, session_memory, tokens, wire
from compaction.core.messages import Message, conversation
from compaction.core.open_round import open_round
from compaction.core.session_memory import Limits, compact
from tests.unit.core.rules import broken_rules, open_calls
from tests.unit.core.strategies import clean_sessions, histories, live_views

MEMORY = "# State\nThe parser is ported; the reader of logs comes next."


def chat(number: int, size: int) -> Message:
    """A message with text of exactly `size` tokens: four letters a token, and four for the block around it."""
    role: Any = "assistant" if number % 2 else "user"
    api = f"m{number}" if number % 2 else None
    return Message(role=role, content="word" * (size - 4), uuid=f"c{number}", api_message_id=api)


def work(number: int, size: int) -> list[Message]:
    """A call and its result, together exactly `size` tokens, without any text."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": None}  # 60 tokens (core/tokens.py)
    told = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "word" * (size - 80)}  # 20 around it
    return [
        Message(role="assistant", content=[call], uuid=f"w{number}", api_message_id=f"w{number}"),
        Message(role="user", content=[told], uuid=f"r{number}"),
    ]


def kept(*messages: Message, **limits: int) -> str:
    found = compact(messages, MEMORY, limits=Limits(**limits))
    return "none" if found is None else " ".join(str(message.uuid) for message in found.kept)


def test_the_limits_are_those_of_the_design() -> None:
    limits = Limits()
    assert (limits.min_tokens, limits.min_texts, limits.max_tokens) == (10_000, 5, 40_000)
    assert session_memory.MEMORY_TOKENS == 20_000


def test_both_minimums_must_be_met() -> None:
    """Five messages of 1,000 are too few tokens, so it takes ten. Two of 5,000 would do, but five are needed."""
    found = compact([chat(number, 1_000) for number in range(30)], MEMORY)
    assert found is not None
    assert (found.kept_tokens, found.kept_texts) == (10_000, 10)
    found = compact([chat(number, 5_000) for number in range(30)], MEMORY)
    assert found is not None
    assert (found.kept_tokens, found.kept_texts) == (25_000, 5)


def test_the_cap_wins_over_the_messages_with_text() -> None:
    """The fourth message of 10,001 would make 40,004."""
    found = compact([chat(number, 10_001) for number in range(30)], MEMORY)
    assert found is not None
    assert (found.kept_tokens, found.kept_texts) == (30_003, 3)


def test_the_cap_itself_may_be_reached() -> None:
    found = compact([chat(number, 10_000) for number in range(30)], MEMORY)
    assert found is not None
    assert found.kept_tokens == 40_000


def test_a_newest_message_over_the_cap_does_not_stay() -> None:
    assert kept(chat(0, 100), chat(1, 100), chat(2, 50_000)) == ""


def test_calls_and_results_are_no_messages_with_text() -> None:
    messages = [
        *(chat(number, 100) for number in range(10)),
        *(one for number in range(5) for one in work(number, 3_000)),
    ]
    found = compact(messages, MEMORY)
    assert found is not None
    assert (found.kept_tokens, found.kept_texts) == (15_500, 5)


@pytest.mark.parametrize("min_tokens", [700, 1_000])
def test_a_pair_stays_whole_or_goes_whole(min_tokens: int) -> None:
    """After the result alone (940 of the pair's 1,000 tokens) 700 would be reached, but a pair is not parted."""
    messages = [chat(0, 500), *work(1, 1_000)]
    assert kept(*messages, min_tokens=min_tokens, min_texts=0) == "w1 r1"


def test_a_pair_over_the_cap_goes_as_a_whole() -> None:
    messages = [chat(0, 500), *work(1, 1_000), chat(2, 100)]
    assert kept(*messages, min_tokens=1_000, min_texts=5, max_tokens=1_050) == "c2"


def test_an_open_last_round_stays_even_over_the_cap() -> None:
    call = {"type": "tool_use", "id": "t9", "name": "Write", "input": "word" * 50_000}
    last = Message(role="assistant", content=[call], uuid="open", api_message_id="open")
    assert kept(chat(0, 500), chat(1, 500), last) == "open"


def test_nothing_behind_the_last_summary_stays() -> None:
    marker = Message(role="system", content="", uuid="b", metadata={"kind": "compact_boundary"})
    summary = Message(role="user", content="What was before.", uuid="s", is_compact_summary=True)
    found = compact([marker, summary, chat(1, 100), chat(2, 100)], MEMORY)
    assert found is not None
    assert [message.uuid for message in found.kept] == ["c1", "c2"]
    assert [message.uuid for message in found.replaced] == ["s"]


def test_what_an_earlier_partial_compaction_kept_before_its_summary_goes() -> None:
    """The summary `s` tells what came behind k: it is newer, so nothing before it stays."""
    facts = chronology.summary_metadata(1)
    summary = Message(role="user", content="What came then.", uuid="s", is_compact_summary=True, metadata=facts)
    messages = [summary, Message(role="user", content="Old.", uuid="k"), chat(1, 100), chat(2, 100)]
    assert kept(*messages) == "c1 c2"


def test_attachments_of_an_earlier_compaction_neither_stay_nor_count() -> None:
    facts = {"kind": "compact_attachment"}
    files = Message(role="user", content="word" * 9_000, uuid="f", is_meta=True, metadata=facts)
    summary = Message(role="user", content="What was before.", uuid="s", is_compact_summary=True)
    assert kept(summary, chat(1, 100), files, chat(2, 100), min_tokens=200, min_texts=2) == "c1 c2"


def test_injected_text_counts_as_tokens_but_not_as_a_message_with_text() -> None:
    injected = Message(role="user", content="word" * 96, uuid="i", is_meta=True)
    assert kept(chat(0, 100), chat(1, 100), injected, min_tokens=0, min_texts=1) == "c1 i"


@pytest.mark.parametrize("memory", ["", "# Title\n_what this is about_\n"])
def test_an_empty_document_is_not_for_us(memory: str) -> None:
    assert compact([chat(number, 5_000) for number in range(30)], memory) is None


def test_a_session_that_would_be_kept_whole_is_not_for_us() -> None:
    assert compact([chat(0, 100), chat(1, 100)], MEMORY) is None
    assert compact([], MEMORY) is None


def test_the_document_is_cut_to_its_budget() -> None:
    messages = [chat(number, 5_000) for number in range(30)]
    found = compact(messages, f"# State\n{'word ' * 10_000}", budget_tokens=1_000)
    assert found is not None
    assert found.memory_cut
    assert found.memory_tokens == tokens.estimate_text(found.summary) <= 1_000
    found = compact(messages, f"\n{MEMORY}\n")
    assert found is not None
    assert (found.summary, found.memory_cut) == (MEMORY, False)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Hello.", True),
        (" \n", False),
        ("", False),
        ([{"type": "text", "text": "Hello."}], True),
        ([{"type": "text", "text": None}, {"type": "image", "source": {}}], False),
        ([{"type": "tool_result", "tool_use_id": "t", "content": "x"}], False),
    ],
)
def test_text_is_what_somebody_says(content: Any, said: bool) -> None:  # noqa: ANN401 - any content
    assert session_memory.has_text(Message(role="user", content=content)) is said


SMALL = Limits(min_tokens=60, min_texts=2, max_tokens=200)


@settings(max_examples=300, deadline=None)
@given(live_views(st.one_of(histories(), clean_sessions())))
def test_any_session_keeps_the_limits_and_loses_nothing(messages: tuple[Message, ...]) -> None:
    found = compact(messages, MEMORY, limits=SMALL)
    if found is None:
        return
    spoken = conversation(messages)
    summary = Message(role="user", content=found.summary, is_compact_summary=True)
    sent = wire.api_messages((summary, *found.kept))
    results = [{"type": "tool_result", "tool_use_id": ident, "content": "ok"} for ident in open_calls(sent)]
    assert broken_rules([*sent, {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}]) == []
    assert found.kept_tokens <= SMALL.max_tokens or open_round(found.kept)
    seqs = {message.seq for message in spoken if message.seq} - {message.seq for message in found.replaced}
    assert {message.seq for message in found.kept if message.seq} <= seqs
    assert not any(message.is_compact_summary for message in found.kept)


@settings(max_examples=200, deadline=None)
@given(clean_sessions(), st.integers(50, 300))
def test_compacting_again_never_grows(messages: tuple[Message, ...], most: int) -> None:
    limits = Limits(min_tokens=50, min_texts=2, max_tokens=most)
    first = compact(messages, MEMORY, limits=limits)
    if first is None:
        return
    summary = Message(role="user", content=first.summary, is_compact_summary=True)
    again = compact((summary, *first.kept), MEMORY, limits=limits)
    assert again is not None
    assert tokens.estimate_messages(again.kept) <= tokens.estimate_messages(first.kept)
    assert again.summary == first.summary
