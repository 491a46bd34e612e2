"""What a split promises for any live view and any named message."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import chronology, kept, partial, wire
from compaction.core.jobs import Scope, ScopeKind
from compaction.core.messages import Message, conversation
from compaction.core.open_round import open_round
from compaction.core.partial import Split
from compaction.core.rebuilt import is_rebuilt
from tests.unit.core.rules import broken_rules, open_calls
from tests.unit.core.strategies import clean_sessions, histories, live_views

KINDS: list[ScopeKind] = ["full", "up_to", "from"]
SUMMARY = Message(role="user", content="A summary.", is_compact_summary=True)
MOST = settings(max_examples=300, deadline=None)


@st.composite
def splits(draw: st.DrawFn, views: st.SearchStrategy[tuple[Message, ...]]) -> tuple[tuple[Message, ...], Scope, Split]:
    """A live view, a scope that names one of its messages, and the split."""
    messages = draw(views)
    named = [message.uuid for message in conversation(messages) if message.uuid is not None]
    kind = draw(st.sampled_from(KINDS)) if named else "full"
    scope = Scope(kind, None if kind == "full" else draw(st.sampled_from(named)))
    before = copy.deepcopy(messages)
    found = partial.split(messages, scope)
    assert messages == before
    return messages, scope, found


any_splits = splits(live_views(st.one_of(histories(), clean_sessions())))
clean_splits = splits(live_views(clean_sessions()))


@MOST
@given(any_splits)
def test_replaced_and_kept_are_the_whole_conversation(case: tuple[tuple[Message, ...], Scope, Split]) -> None:
    messages, _, found = case
    assert sorted(map(id, (*found.replaced, *found.kept))) == sorted(map(id, conversation(messages)))


@MOST
@given(any_splits)
def test_both_parts_stand_in_order(case: tuple[tuple[Message, ...], Scope, Split]) -> None:
    messages, _, found = case
    stored = {id(message): place for place, message in enumerate(messages)}
    happened = {id(message): place for place, message in enumerate(chronology.chronological(messages))}
    places = [stored[id(message)] for message in found.kept]
    assert places == sorted(places)
    times = [happened[id(message)] for message in found.replaced]
    assert times == sorted(times)
    older = [happened[id(message)] for message in found.kept[: found.earlier]]
    newer = [happened[id(message)] for message in found.replaced if not is_rebuilt(message)]
    assert not older or not newer or max(older) < min(newer)


@MOST
@given(clean_splits)
def test_no_pair_and_no_answer_is_parted(case: tuple[tuple[Message, ...], Scope, Split]) -> None:
    _, _, found = case
    for one, other in ((found.replaced, found.kept), (found.kept, found.replaced)):
        asked = {block["id"] for message in one for block in message.blocks() if block["type"] == "tool_use"}
        told = {block["tool_use_id"] for message in other for block in message.blocks() if "tool_use_id" in block}
        assert not asked & told
    answers = [{m.api_message_id for m in part if m.api_message_id} for part in (found.replaced, found.kept)]
    assert not answers[0] & answers[1]


@MOST
@given(clean_splits)
def test_the_named_message_is_summarised_unless_its_call_is_open(
    case: tuple[tuple[Message, ...], Scope, Split],
) -> None:
    _, scope, found = case
    if scope.uuid is not None and scope.uuid not in {message.uuid for message in found.replaced}:
        assert open_round(found.kept)
        assert scope.uuid in {message.uuid for message in open_round(found.kept)}


@MOST
@given(any_splits)
def test_what_goes_on_is_valid_and_holds_no_thinking(case: tuple[tuple[Message, ...], Scope, Split]) -> None:
    _, _, found = case
    carried = partial.carried(found)
    assert carried.messages == kept.carried(found.kept)
    assert 0 <= carried.earlier <= len(carried.messages)
    assert not any("thinking" in block["type"] for message in carried.messages for block in message.blocks())
    sent = wire.api_messages((SUMMARY, *carried.messages))
    results = [{"type": "tool_result", "tool_use_id": ident, "content": "ok"} for ident in open_calls(sent)]
    assert broken_rules([*sent, {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}]) == []


@MOST
@given(clean_splits)
def test_the_kept_messages_are_one_chain_again(case: tuple[tuple[Message, ...], Scope, Split]) -> None:
    _, _, found = case
    linked = partial.carried(found).messages
    known = {message.uuid for message in linked}
    assert all(message.parent_uuid in {None, *known} for message in linked[1:])
