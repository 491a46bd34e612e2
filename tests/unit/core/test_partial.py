"""Which messages are replaced and which stay, on small hand-written views."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core import chronology, partial
from compaction.core.boundary import Boundary
from compaction.core.jobs import Scope
from compaction.core.messages import Message
from compaction.core.partial import UNKNOWN, UNNAMED
from compaction.errors import InvalidSession


def user(name: str, text: str = "Go on.", **facts: Any) -> Message:  # noqa: ANN401 - the fields of a message
    return Message(role="user", content=text, uuid=name, **facts)


def says(name: str, api: str | None = None) -> Message:
    return Message(role="assistant", content=[{"type": "text", "text": name}], uuid=name, api_message_id=api)


def calls(name: str, *idents: str, api: str | None = None) -> Message:
    blocks = [{"type": "tool_use", "id": ident, "name": "Read", "input": {}} for ident in idents]
    return Message(role="assistant", content=blocks, uuid=name, api_message_id=api)


def result(name: str, *idents: str) -> Message:
    blocks = [{"type": "tool_result", "tool_use_id": ident, "content": "text"} for ident in idents]
    return Message(role="user", content=blocks, uuid=name)


def attachment(name: str) -> Message:
    facts = {"kind": "compact_attachment", "attachment": "files"}
    return Message(role="user", content="Files.", uuid=name, is_meta=True, metadata=facts)


def names(messages: tuple[Message, ...]) -> str:
    return " ".join(str(message.uuid) for message in messages)


def split(scope: str, *messages: Message) -> tuple[str, str]:
    """The uuids of the replaced and of the kept messages; `scope` is a kind and a uuid."""
    kind, _, uuid = scope.partition(" ")
    found = partial.split(messages, Scope(kind, uuid or None))  # type: ignore[arg-type]  # the test's own words
    return names(found.replaced), names(found.kept)


TALK = (user("q1"), says("a1"), user("q2"), says("a2"), user("q3"), says("a3"))
MARKER = Boundary(
    uuid="b", trigger="manual", strategy="fresh", pre_tokens=9, covers_through_seq=9, job_id="j"
).message()
SUMMARY = user("s", "What was before.", is_compact_summary=True)


def test_up_to_replaces_everything_through_the_named_message() -> None:
    assert split("up_to a1", *TALK) == ("q1 a1", "q2 a2 q3 a3")


def test_from_replaces_the_named_message_and_everything_behind_it() -> None:
    assert split("from q3", *TALK) == ("q3 a3", "q1 a1 q2 a2")


@pytest.mark.parametrize(
    ("scope", "whole"), [("full", True), ("up_to a3", True), ("from q1", True), ("from a1", False)]
)
def test_both_ends_are_the_whole(scope: str, whole: bool) -> None:
    replaced, kept = split(scope, *TALK)
    assert (replaced == names(TALK)) is whole
    assert (kept == "") is whole


# Two calls with their results in two messages, and an answer in two fragments around the first of the results.
WORK = (
    user("q1"),
    calls("a1", "t1", "t2", api="m1"),
    result("r1", "t1"),
    result("r2", "t2"),
    calls("a2", "t3", api="m2"),
    result("r3", "t3"),
    calls("a2b", "t4", api="m2"),
    result("r4", "t4"),
    user("q2"),
    says("a3"),
)


@pytest.mark.parametrize("named", ["a1", "r1", "r2"])
def test_up_to_moves_forward_to_the_end_of_the_pair(named: str) -> None:
    assert split(f"up_to {named}", *WORK)[0] == "q1 a1 r1 r2"


@pytest.mark.parametrize("named", ["a2", "r3", "a2b", "r4"])
def test_up_to_moves_forward_over_the_fragments_of_an_answer(named: str) -> None:
    assert split(f"up_to {named}", *WORK) == ("q1 a1 r1 r2 a2 r3 a2b r4", "q2 a3")


@pytest.mark.parametrize("named", ["a2", "r3", "a2b", "r4"])
def test_from_moves_back_to_the_beginning_of_the_answer(named: str) -> None:
    assert split(f"from {named}", *WORK) == ("a2 r3 a2b r4 q2 a3", "q1 a1 r1 r2")


@pytest.mark.parametrize(("named", "moved"), [("r2", False), ("r1", True), ("q1", False)])
def test_a_split_says_whether_it_was_moved(named: str, moved: bool) -> None:
    assert partial.split(WORK, Scope("up_to", named)).moved is moved


def test_a_user_message_behind_the_results_may_stay_alone() -> None:
    assert split("up_to r4", *WORK)[1] == "q2 a3"


def test_a_server_tools_result_in_a_later_message_stays_with_its_call() -> None:
    asked = Message(
        role="assistant",
        uuid="a1",
        content=[{"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}],
    )
    told = Message(
        role="assistant",
        uuid="a2",
        content=[{"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}],
    )
    messages = (user("q1"), asked, user("q2"), told, user("q3"))
    assert split("up_to a1", *messages)[0] == "q1 a1 q2 a2"
    assert split("from q2", *messages)[0] == "a1 q2 a2 q3"


OPEN = (*TALK, calls("a4", "t9", api="m9"))


@pytest.mark.parametrize("scope", ["full", "up_to a4", "from q1"])
def test_an_open_last_round_stays_in_every_scope(scope: str) -> None:
    assert split(scope, *OPEN) == (names(TALK), "a4")


def test_an_open_round_stands_behind_the_older_messages() -> None:
    found = partial.split(OPEN, Scope("from", "q2"))
    assert names(found.replaced) == "q2 a2 q3 a3"
    assert (names(found.kept), found.earlier) == ("q1 a1 a4", 2)


def test_naming_the_open_round_itself_leaves_nothing_to_replace() -> None:
    assert split("from a4", *OPEN) == ("", names(OPEN))


def test_what_the_user_said_behind_an_open_call_stays_with_it() -> None:
    assert split("full", *OPEN, user("q4")) == (names(TALK), "a4 q4")


@pytest.mark.parametrize("named", ["nobody", "b", "side", "half", "before"])
def test_a_message_outside_the_live_conversation_cannot_be_named(named: str) -> None:
    side, half = user("side", is_sidechain=True), user("half", partial=True)
    with pytest.raises(InvalidSession) as caught:
        partial.split((MARKER, SUMMARY, side, *TALK, half), Scope("up_to", named))
    assert caught.value.code == "invalid_session"
    assert caught.value.message == UNKNOWN


def test_a_partial_scope_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidSession) as caught:
        partial.split(TALK, Scope("from"))
    assert caught.value.message == UNNAMED


def test_sub_agents_and_half_streamed_messages_are_in_neither_part() -> None:
    side, half = user("side", is_sidechain=True), user("half", partial=True)
    assert split("up_to a1", user("q1"), side, says("a1"), user("q2"), half) == ("q1 a1", "q2")


# ------------------------------------------------------------------------------------------ over an earlier compaction


def test_up_to_takes_the_earlier_summary_along() -> None:
    assert split("up_to a1", MARKER, SUMMARY, *TALK) == ("s q1 a1", "q2 a2 q3 a3")


def test_from_leaves_the_earlier_summary_where_it_is() -> None:
    assert split("from q3", MARKER, SUMMARY, *TALK) == ("q3 a3", "s q1 a1 q2 a2")


@pytest.mark.parametrize("scope", ["full", "up_to a1", "from q3"])
def test_attachments_of_an_earlier_compaction_never_stay(scope: str) -> None:
    replaced, kept = split(scope, MARKER, SUMMARY, attachment("f"), *TALK)
    assert "f" in replaced.split()
    assert "f" not in kept.split()


def test_attachments_behind_an_open_round_do_not_stay_with_it() -> None:
    assert split("full", MARKER, SUMMARY, calls("a1", "t1"), attachment("f")) == ("s f", "a1")


# After a compaction of scope `from`: s tells what came behind k1 and k2.
RECENT = Message(
    role="user", content="What came then.", uuid="s", is_compact_summary=True, metadata=chronology.summary_metadata(2)
)
FROM_VIEW = (MARKER, RECENT, user("k1"), says("k2"), user("q1"), says("a1"))


def test_a_summary_of_a_recent_part_is_told_where_it_happened() -> None:
    assert split("full", *FROM_VIEW) == ("k1 k2 s q1 a1", "")


@pytest.mark.parametrize("named", ["k1", "k2", "s"])
def test_older_messages_and_the_summary_before_them_stay_together(named: str) -> None:
    assert split(f"up_to {named}", *FROM_VIEW) == ("k1 k2 s", "q1 a1")
    assert split(f"from {named}", *FROM_VIEW) == ("k1 k2 s q1 a1", "")


def test_from_again_keeps_the_earlier_result_in_its_own_order() -> None:
    found = partial.split(FROM_VIEW, Scope("from", "q1"))
    assert (names(found.replaced), names(found.kept), found.earlier) == ("q1 a1", "s k1 k2", 3)


# -------------------------------------------------------------------------------------------------- what is carried on


def thinks(name: str, *others: dict[str, str], parent: str | None = None) -> Message:
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "SIG"}, *others]
    return Message(role="assistant", content=blocks, uuid=name, parent_uuid=parent, api_message_id="m1")


def test_carried_messages_have_no_thinking_and_the_count_follows() -> None:
    """The older part loses a message that was nothing but thinking, so two of three are older."""
    messages = (user("q1"), thinks("a1"), thinks("a1b", {"type": "text", "text": "Done."}), user("q2"), says("a2"))
    carried = partial.carried(partial.split(messages, Scope("from", "q2")))
    assert (names(carried.messages), carried.earlier) == ("q1 a1b", 2)
    assert carried.messages[1].content == [{"type": "text", "text": "Done."}]
