from __future__ import annotations

from compaction.core.messages import Message
from compaction.formats.content import ContentFacts
from compaction.formats.turns import Entry, Turn, entry_of, turn_facts, turns


def said(
    role: str, message_id: str | None = None, *, calls: tuple[str, ...] = (), results: tuple[str, ...] = ()
) -> Entry:
    return Entry(role, message_id, ContentFacts(tool_uses=calls, tool_results=results))


def test_neighbours_of_one_role_are_one_turn() -> None:
    assert turns([said("user"), said("user"), said("assistant", "a"), said("assistant", "b")]) == [
        Turn("user"),
        Turn("assistant"),
    ]


def test_a_late_fragment_joins_its_message_across_the_result_in_between() -> None:
    entries = [
        said("user"),
        said("assistant", "m", calls=("c1",)),
        said("user", results=("c1",)),
        said("assistant", "m", calls=("c2",)),
        said("user", results=("c2",)),
    ]
    assert turns(entries) == [Turn("user"), Turn("assistant", ["c1", "c2"]), Turn("user", [], ["c1", "c2"])]


def test_answers_without_a_message_id_are_messages_of_their_own() -> None:
    assert turns([said("assistant"), said("user"), said("assistant")]) == [
        Turn("assistant"),
        Turn("user"),
        Turn("assistant"),
    ]


def test_calls_at_the_end_are_open_and_told_apart() -> None:
    facts = turn_facts([said("user"), said("assistant", "m", calls=("c1", "c2"))])
    assert (facts.orphan_tool_use, facts.orphan_tool_use_in_last_message) == (2, 2)
    assert (facts.messages, facts.rows_used, facts.first_role, facts.last_role) == (2, 2, "user", "assistant")


def test_a_call_is_answered_only_by_the_very_next_turn() -> None:
    entries = [
        said("user"),
        said("assistant", "m", calls=("c1",)),
        said("user"),
        said("assistant", "n"),
        said("user", results=("c1",)),
    ]
    facts = turn_facts(entries)
    assert (facts.orphan_tool_use, facts.orphan_tool_use_in_last_message, facts.orphan_tool_result) == (1, 0, 1)


def test_a_result_at_the_start_has_lost_its_call() -> None:
    assert turn_facts([said("user", results=("c0",))]).orphan_tool_result == 1


def test_a_view_without_messages_has_no_roles() -> None:
    facts = turn_facts([])
    assert (facts.messages, facts.first_role, facts.last_role, facts.orphan_tool_use) == (0, None, None, 0)


def test_block_counts_are_sums_and_api_messages_are_distinct() -> None:
    entry = Entry("assistant", "m", ContentFacts(blank_texts=1, thinking=2, images=3, documents=4))
    facts = turn_facts([entry, entry, said("assistant", "n"), said("assistant")], rows_used=9)
    assert (facts.blank_text_blocks, facts.thinking_blocks, facts.image_blocks, facts.document_blocks) == (2, 4, 6, 8)
    assert (facts.api_messages, facts.rows_used) == (2, 9)


def test_only_what_the_model_sees_becomes_an_entry() -> None:
    message = Message(role="assistant", content=[{"type": "tool_use", "id": "c"}], api_message_id="m")
    assert entry_of(message) == said("assistant", "m", calls=("c",))
    assert entry_of(Message(role="system", content="")) is None
    assert entry_of(Message(role="user", content="x", is_sidechain=True)) is None
