"""Pairs of server tools."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from compaction.core.server_pairs import pair_server_calls
from compaction.core.tool_ids import ToolIds
from compaction.core.turns import Turn
from tests.unit.core.samples import Block, result, text, use


def call(ident: Any = "srvtoolu_1", name: str = "web_search", **more: Any) -> Block:  # noqa: ANN401 - odd ones too
    return {"type": "server_tool_use", "id": ident, "name": name, "input": {"q": "x"}, **more}


def answer(ident: Any = "srvtoolu_1", content: Any = "found") -> Block:  # noqa: ANN401 - odd ones too
    return {"type": "web_search_tool_result", "tool_use_id": ident, "content": content}


def made_by(ident: str, tool_id: str) -> Block:
    return use(ident, caller={"type": "code_execution_20250825", "tool_id": tool_id})


def paired(*turns: list[Block]) -> tuple[list[list[Block]], dict[str, int]]:
    """The turns in turn the assistant's and the user's, and the repairs."""
    roles = ("assistant", "user")
    given: list[Turn] = [{"role": roles[number % 2], "content": blocks} for number, blocks in enumerate(turns)]
    tally: Counter[str] = Counter()
    found = pair_server_calls(given, ToolIds(()), tally)
    return [turn["content"] for turn in found], dict(+tally)


def test_turns_without_server_tools_are_the_same_objects() -> None:
    turns: list[Turn] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [use("t1")]}]
    tally: Counter[str] = Counter()
    assert all(one is two for one, two in zip(pair_server_calls(turns, ToolIds(()), tally), turns, strict=True))


def test_a_complete_pair_stays() -> None:
    blocks = [text("a"), call(), answer(), text("b")]
    (found,), repairs = paired(blocks)
    assert found is blocks
    assert repairs == {}


def test_a_call_without_result_is_told() -> None:
    (found, _), repairs = paired([call(name="web_fetch"), text("a")], [text("never mind")])
    assert found == [text('[web_fetch was called on the server; no result was recorded] {"q":"x"}'), text("a")]
    assert repairs == {"server_blocks_turned_to_text": 1}


@pytest.mark.parametrize(
    ("content", "told"),
    [("found", "[web search tool result] found"), ("", "[web_search_tool_result without content]")],
)
def test_a_result_without_call_is_told(content: str, told: str) -> None:
    (found,), repairs = paired([answer(content=content), text("a")])
    assert found == [text(told), text("a")]
    assert repairs == {"server_blocks_turned_to_text": 1}


def test_a_result_in_the_next_turn_is_too_late_without_a_client_call_between() -> None:
    (one, _, two), _ = paired([call()], [text("x")], [answer()])
    assert [one[0]["type"], two[0]["type"]] == ["text", "text"]


def test_a_code_execution_waits_while_it_calls_the_clients_tools() -> None:
    first, second, third = [call(), made_by("t1", "srvtoolu_1")], [made_by("t2", "srvtoolu_1")], [answer()]
    found, repairs = paired(first, [result("t1")], second, [result("t2")], third)
    assert found == [first, [result("t1")], second, [result("t2")], third]
    assert repairs == {}


def test_a_code_execution_may_still_wait_at_the_end() -> None:
    blocks = [call(), made_by("t1", "srvtoolu_1")]
    (found,), repairs = paired(blocks)
    assert found is blocks
    assert repairs == {}


def test_a_code_execution_that_never_ends_is_told_and_its_calls_become_the_models_own() -> None:
    (first, _, second), repairs = paired([call(), made_by("t1", "srvtoolu_1")], [result("t1")], [text("moving on")])
    assert first[0]["type"] == "text"
    assert first[1] == use("t1")
    assert second == [text("moving on")]
    assert repairs == {"server_blocks_turned_to_text": 1, "fields_dropped": 1}


def test_a_caller_that_never_was_is_dropped() -> None:
    (found,), repairs = paired([made_by("t1", "srvtoolu_9")])
    assert found == [use("t1")]
    assert repairs == {"fields_dropped": 1}


def test_ids_become_valid_and_unique_and_pairs_follow() -> None:
    (found,), repairs = paired(
        [call("srv-1"), call("srv-1"), made_by("t1", "srv-1"), answer("srv-1", "one"), answer("srv-1", "two")]
    )
    one, two = found[0]["id"], found[1]["id"]
    assert one == "srvtoolu_srv_1_2"
    assert two == "srvtoolu_srv_1_3"
    assert [block["tool_use_id"] for block in found[3:]] == [one, two]
    assert found[2]["caller"]["tool_id"] == two
    assert repairs == {"tool_ids_renamed": 2}


def test_a_caller_in_the_next_turn_follows_its_renamed_maker() -> None:
    (first, _, second), _ = paired([call("x"), made_by("t1", "x")], [result("t1")], [answer("x")])
    assert first[1]["caller"]["tool_id"] == first[0]["id"] == second[0]["tool_use_id"]


def test_a_server_call_made_by_another_keeps_its_maker() -> None:
    inner = call("srvtoolu_2", caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_1"})
    blocks = [call(), inner, answer("srvtoolu_2"), answer()]
    assert paired(blocks) == ([blocks], {})


def test_a_call_of_an_mcp_server_keeps_an_id_of_the_common_pattern() -> None:
    blocks: list[Block] = [
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "find", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": "x"},
    ]
    assert paired(blocks) == ([blocks], {})
