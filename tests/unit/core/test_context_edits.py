"""Cache edits: the decision, and that the API's own clearing comes out the same."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core import microcompact
from compaction.core.context_edits import BETA, TRIGGER_RESULTS, CacheEdit, cache_edit
from compaction.core.messages import Message
from compaction.core.microcompact import CLEARED_TOKENS
from compaction.core.tool_table import ToolTable

BIG = "word" * 980  # a result of exactly 1,000 tokens
SAVED = 1_000 - CLEARED_TOKENS


def work(number: int, name: Any = "Read", content: Any = BIG) -> list[Message]:  # noqa: ANN401 - any name, any content
    call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {}}
    told = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}
    return [
        Message(role="assistant", content=[call], api_message_id=f"m{number}"),
        Message(role="user", content=[told]),
    ]


def session(names: list[str]) -> list[Message]:
    return [
        Message(role="user", content="Port it."),
        *(one for place, name in enumerate(names) for one in work(place, name)),
    ]


def decided(messages: list[Message], **rules: Any) -> CacheEdit | None:  # noqa: ANN401 - the rule's numbers
    return cache_edit(messages, **{"cache_warm": True, "table": ToolTable(), **rules})


def edit_of(found: CacheEdit | None) -> dict[str, Any]:
    assert found is not None
    (edit,) = found.context_management["edits"]
    assert isinstance(edit, dict)
    return edit


def applied(messages: list[Message], edit: dict[str, Any]) -> list[str]:
    """The ids that the API would clear, by facts/anthropic.md §3c, written down a second time for comparison.

    Once there are more uses than the trigger, all but the newest `keep` go; excluded tools are passed over.
    """
    calls = [block for message in messages for block in message.blocks() if block["type"] == "tool_use"]
    counted = [call["id"] for call in calls if call["name"] not in edit["exclude_tools"]]
    answered = {block.get("tool_use_id") for message in messages for block in message.blocks()}
    if len(counted) <= edit["trigger"]["value"]:
        return []
    return [ident for ident in counted[: len(counted) - edit["keep"]["value"]] if ident in answered]


def test_the_value_is_ready_to_send() -> None:
    found = decided(session(["Read"] * 25))
    assert found is not None
    assert found.context_management == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "tool_uses", "value": 3},
                "keep": {"type": "tool_uses", "value": 3},
                "exclude_tools": [],
            }
        ]
    }
    assert BETA == "context-management-2025-06-27"


def test_it_clears_all_but_the_newest_three() -> None:
    messages = session(["Read"] * 25)
    found = decided(messages)
    assert found is not None
    assert found.cleared_ids == tuple(f"t{number}" for number in range(22))
    assert (found.clearable_results, found.kept_results, found.saved_tokens) == (25, 3, 22 * SAVED)
    assert applied(messages, edit_of(found)) == list(found.cleared_ids)


@pytest.mark.parametrize(("count", "passed"), [(TRIGGER_RESULTS, False), (TRIGGER_RESULTS + 1, True)])
def test_the_count_must_pass_the_trigger(count: int, passed: bool) -> None:
    assert (decided(session(["Read"] * count)) is not None) is passed


def test_a_cold_cache_is_not_for_us() -> None:
    assert decided(session(["Read"] * 25), cache_warm=False) is None


def test_other_tools_are_excluded_by_name_wherever_they_stand() -> None:
    names = ["Read", "Task", "Bash", "AskUserQuestion"] * 10
    messages = session([*names, "Task", "Task"])
    found = decided(messages, trigger_results=10)
    edit = edit_of(found)
    assert edit["exclude_tools"] == ["AskUserQuestion", "Task"]
    assert edit["keep"]["value"] == 3
    assert found is not None
    assert applied(messages, edit) == list(found.cleared_ids)
    assert len(found.cleared_ids) == 17


def test_tools_that_are_only_declared_are_excluded_too() -> None:
    tools = [{"name": "Read"}, {"name": "Deploy"}, {"name": ["odd"]}, "odd"]
    assert edit_of(decided(session(["Read"] * 25), tools=tools))["exclude_tools"] == ["Deploy"]
    assert edit_of(decided(session(["Read"] * 25), tools="odd"))["exclude_tools"] == []


def test_a_tool_that_the_api_runs_itself_is_excluded_under_any_name() -> None:
    """A client's tool of the same name can then not be cleared either: the API only knows names."""
    served = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    messages = [*session(["Read", "web_search"] * 15), Message(role="assistant", content=[served])]
    found = decided(messages, trigger_results=10)
    assert edit_of(found)["exclude_tools"] == ["web_search"]
    assert found is not None
    assert len(found.cleared_ids) == 12


def test_open_calls_at_the_end_are_counted_by_the_api() -> None:
    open_call = Message(role="assistant", content=[{"type": "tool_use", "id": "open", "name": "Read", "input": {}}])
    messages = [*session(["Read"] * 25), open_call]
    found = decided(messages)
    edit = edit_of(found)
    assert edit["keep"]["value"] == 4
    assert found is not None
    assert applied(messages, edit) == list(found.cleared_ids)
    assert len(found.cleared_ids) == 22


def test_keeping_nothing_still_needs_a_trigger() -> None:
    edit = edit_of(decided(session(["Read"] * 25), keep_results=0))
    assert (edit["trigger"]["value"], edit["keep"]["value"]) == (1, 0)


def test_what_an_earlier_edit_cleared_does_not_count_again() -> None:
    messages = session(["Read"] * 25)
    first = decided(messages)
    assert first is not None
    seen = frozenset(first.cleared_ids)
    assert decided(messages, already_cleared=seen) is None
    longer = session(["Read"] * 43)
    assert decided(longer[:-2], already_cleared=seen) is None  # 42 results: 20 that are new
    again = decided(longer, already_cleared=seen)
    assert again is not None
    assert again.cleared_ids == tuple(f"t{number}" for number in range(22, 40))
    assert again.saved_tokens == 18 * SAVED
    assert applied(longer, edit_of(again)) == [*first.cleared_ids, *again.cleared_ids]


def test_results_that_show_nothing_any_more_do_not_count() -> None:
    cleared = [one for number in range(10) for one in work(number, content=microcompact.CLEARED)]
    messages = [*cleared, *(one for number in range(10, 30) for one in work(number))]
    assert decided(messages) is None
    found = decided(messages, trigger_results=19)
    assert found is not None
    assert found.cleared_ids == tuple(f"t{number}" for number in range(10, 27))


def test_little_results_are_not_worth_writing_the_cache_anew() -> None:
    assert decided([one for number in range(60) for one in work(number, content="ok")]) is None


def test_calls_without_a_name_are_passed_over() -> None:
    messages = [*session(["Read"] * 25), *(one for number in range(30, 40) for one in work(number, name=None))]
    assert edit_of(decided(messages))["exclude_tools"] == []


def test_texts_and_sub_agents_are_passed_over() -> None:
    aside = [Message(role="assistant", content=one.content, is_sidechain=True) for one in session(["Deploy"] * 9)[1::2]]
    messages = [*aside, Message(role="assistant", content="Hm."), *session(["Read"] * 25)]
    assert edit_of(decided(messages))["exclude_tools"] == []


def test_the_event_names_the_ids_that_the_api_cannot_be_told() -> None:
    found = decided(session(["Read"] * 25), keep_results=22)
    assert found is not None
    assert found.event_fields() == {
        "cleared_tool_ids": ["t0", "t1", "t2"],
        "cleared_results": 3,
        "kept_results": 22,
        "clearable_results": 25,
        "saved_tokens": 3 * SAVED,
        "context_management": found.context_management,
    }
