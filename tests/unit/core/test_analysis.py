"""Where the room in a window goes, by hand calculation."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings

from compaction.core import tokens
from compaction.core.analysis import MAX_READS, MAX_TOOLS, RepeatedRead, Share, ToolShare, analyse
from compaction.core.messages import Message, Usage
from compaction.core.turns import distinct
from tests.unit.core.strategies import live_views


def call(ident: str, name: str, given: Any = None) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """A call without input takes 60 tokens (core/tokens.py)."""
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def result(ident: str, content: str) -> dict[str, Any]:
    """Four letters a token, and 20 around a result."""
    return {"type": "tool_result", "tool_use_id": ident, "content": content}


IMAGE: dict[str, Any] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "word" * 5, "signature": "S" * 1_000}
SESSION = [
    Message(role="system", content="", metadata={"kind": "compact_boundary"}),
    Message(role="user", content="word" * 96, is_compact_summary=True),  # 100
    Message(role="user", content="word" * 46, is_meta=True),  # 50
    Message(role="user", content="word" * 6, metadata={"kind": "compact_attachment"}),  # 10
    Message(role="user", content=[{"type": "text", "text": "word" * 26}, IMAGE]),  # 30 and 1,600
    Message(role="assistant", content=[THOUGHT, call("a", "Bash"), call("b", "Read"), call("c", "Bash")]),  # 5, 60 each
    Message(role="user", content=[result("a", "word" * 80), result("b", "word" * 180), result("z", "word" * 10)]),
    Message(role="assistant", content="word" * 16),  # 20
    Message(role="assistant", content="word" * 999, is_sidechain=True),
]


def test_every_token_has_its_kind() -> None:
    found = analyse(SESSION, system="word" * 7, tools=None, window=10_000)
    assert dict(found.kinds) == {
        "system": 7,
        "tools": 0,
        "summary": 100,
        "attachments": 60,
        "user": 30,
        "assistant": 20,
        "thinking": 5,
        "requests": 180,
        "results": 100 + 200 + 30,
        "media": 1_600,
    }
    assert found.estimated_tokens == 2_332


def test_roles_and_tools_are_summed_up_largest_first() -> None:
    found = analyse(SESSION, window=10_000)
    assert dict(found.roles) == {"user": Share(5, 100 + 50 + 10 + 1_630 + 330), "assistant": Share(2, 185 + 20)}
    assert found.tools == (
        ToolShare("Read", Share(1, 60), Share(1, 200)),
        ToolShare("Bash", Share(2, 120), Share(1, 100)),
        ToolShare("unknown", Share(), Share(1, 30)),
    )


def test_server_tools_are_tools() -> None:
    served: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
    ]
    (tool,) = analyse([Message(role="assistant", content=served)], window=1).tools
    assert (tool.name, tool.requests.count, tool.results.count) == ("web_search", 1, 1)


def test_the_share_of_the_window_counts_what_the_provider_counted() -> None:
    answer = Message(role="assistant", content="word", usage=Usage(input_tokens=150_000, output_tokens=1_000))
    found = analyse([Message(role="user", content="Hello."), answer], window=200_000)
    assert (found.tokens, found.anchored, found.percent_of_window) == (151_000, True, 75.5)
    assert analyse([], window=0).percent_of_window == 0.0


def read(ident: str, size: int, **given: Any) -> list[Message]:  # noqa: ANN401 - any JSON
    return [
        Message(role="assistant", content=[call(ident, "Read", given)]),
        Message(role="user", content=[result(ident, "word" * (size - 20))]),
    ]


def test_reading_the_same_part_again_makes_the_older_result_a_waste() -> None:
    messages = [
        *read("1", 500, file_path="a.py"),
        *read("2", 600, file_path="a.py"),
        *read("3", 700, file_path="a.py"),
        *read("4", 300, file_path="a.py", offset=10),
        *read("5", 400, file_path="b.py"),
        *read("6", 900, path="c.py"),
        *read("7", 900, path="c.py"),
        *read("8", 100),
    ]
    found = analyse(messages, window=10_000)
    assert found.repeated_reads == (RepeatedRead("a.py", 4, 1_100), RepeatedRead("c.py", 2, 900))
    assert found.to_dict()["wasted_tokens"] == 2_000


def test_the_answer_is_plain_json() -> None:
    found = analyse([*SESSION, *read("1", 100, file_path="a"), *read("2", 100, file_path="a")], window=10_000).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["estimated_tokens"] == 2_325 + 2 * (60 + 9 + 100)  # the input of a read is 9 tokens as JSON
    assert found["kinds"][2] == {"kind": "summary", "tokens": 100, "percent": 3.8}
    assert found["roles"]["assistant"]["messages"] == 4
    assert found["tools"][0]["name"] == "Read"
    assert found["tools"][0]["requests"] == 3
    assert found["repeated_reads"] == [{"path": "a", "reads": 2, "wasted_tokens": 100}]


def test_an_empty_session_divides_by_nothing() -> None:
    found = analyse([], window=200_000)
    assert (found.estimated_tokens, found.percent_of_window) == (0, 0.0)
    assert all(kind["percent"] == 0.0 for kind in found.to_dict()["kinds"])


def test_long_lists_are_cut() -> None:
    tools = [Message(role="assistant", content=[call(str(number), f"tool{number}")]) for number in range(MAX_TOOLS + 1)]
    reads = [one for number in range(MAX_READS + 1) for _ in "12" for one in read(f"r{number}", 99, path=str(number))]
    found = analyse([*tools, *reads], window=1)
    assert (len(found.tools), len(found.repeated_reads)) == (MAX_TOOLS, MAX_READS)


@settings(max_examples=200, deadline=None)
@given(live_views())
def test_the_kinds_add_up_to_the_estimate_of_the_whole(messages: tuple[Message, ...]) -> None:
    found = analyse(messages, window=200_000)
    assert found.estimated_tokens == tokens.estimate_messages(distinct(messages))
    assert found.estimated_tokens == sum(share.tokens for share in found.roles.values())
