"""Request bodies, messages ready to send, and the hash of a prefix."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from compaction.core import jsonbytes, wire
from compaction.core.messages import Message
from compaction.ports import SummaryRequest
from tests.unit.core.rules import broken_rules
from tests.unit.core.samples import assistant, image, result, text, thinking, usage, use, user


def request(*messages: Message, **fields: Any) -> SummaryRequest:  # noqa: ANN401 - the port's fields
    given = {
        "kind": "fresh",
        "model": "claude-haiku-4-5",
        "messages": messages,
        "system_prompt": "You summarise.",
        "user_prompt": "Summarise now.",
        "max_output_tokens": 20_000,
        **fields,
    }
    return SummaryRequest(**given)


def test_api_messages_are_merged_and_repaired() -> None:
    history = [
        user("go", uuid="u-1"),
        user("go", uuid="u-1"),
        assistant(thinking(), api_message_id="m1", usage=usage(100)),
        assistant(use("a.b"), api_message_id="m1"),
        user(result("a.b")),
        assistant("done", is_meta=False),
    ]
    assert wire.api_messages(history) == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use("a_b_2")]},
        {"role": "user", "content": [result("a_b_2")]},
        {"role": "assistant", "content": "done"},
    ]


def test_api_messages_of_nothing_are_nothing() -> None:
    assert wire.api_messages([]) == []
    assert wire.api_messages([user(""), assistant(thinking())]) == []


@pytest.mark.parametrize("proof", [{"signature": "SIG"}, {"encrypted_content": "XYZ"}])
def test_a_summary_of_the_apis_own_never_takes_ours_with_it(proof: dict[str, str]) -> None:
    block = {"type": "compaction", "content": "what was", **proof}
    ours = user("Ours.", is_compact_summary=True)
    assert wire.api_messages([ours, assistant(block, text("so")), user("go on")]) == [
        {"role": "user", "content": "Ours."},
        {"role": "assistant", "content": [text("[compaction] what was"), text("so")]},
        {"role": "user", "content": "go on"},
    ]


def test_a_summary_of_the_apis_own_stays_what_it_is_before_ours() -> None:
    block = {"type": "compaction", "content": "what was", "signature": "SIG"}
    sent = wire.api_messages([assistant(block), user("Ours.", is_compact_summary=True), assistant("so")])
    assert sent[0] == {"role": "assistant", "content": [block]}


def test_open_calls_of_the_last_round_stay_open_unless_closed() -> None:
    history = [user("go"), assistant(use("t1"))]
    assert wire.api_messages(history)[-1]["role"] == "assistant"
    assert wire.api_messages(history, close_open=True)[-1]["role"] == "user"


def test_attachments_stand_before_an_open_round_so_that_its_results_can_follow_it() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    files = Message(role="user", content="Files.", is_meta=True, metadata={"kind": "compact_attachment"})
    messages = [Message(role="user", content="Summary."), Message(role="assistant", content=[call]), files]
    assert wire.api_messages(messages) == [
        {"role": "user", "content": [{"type": "text", "text": "Summary."}, {"type": "text", "text": "Files."}]},
        {"role": "assistant", "content": [call]},
    ]


def test_a_fresh_body_is_one_user_message_with_transcript_and_prompt() -> None:
    body = json.loads(wire.fresh_body(request(user("go"), assistant(thinking(), text("done")), user(image()))))
    transcript = body["messages"][0]["content"][0]
    assert body == {
        "model": "claude-haiku-4-5",
        "max_tokens": 20_000,
        "stream": True,
        "system": "You summarise.",
        "messages": [{"role": "user", "content": [transcript, {"type": "text", "text": "Summarise now."}]}],
    }
    assert transcript["type"] == "text"
    assert transcript["text"].startswith("~~~~ user\ngo\n")
    assert "image/png" in transcript["text"]
    assert "iVBORw0KGgo" not in transcript["text"]
    assert broken_rules(body["messages"]) == []


def test_a_fresh_body_is_utf8_whatever_prompts_and_history_hold() -> None:
    wanted = request(user("half \ud83d"), user_prompt="nul \0", system_prompt=" ", messages=[user("half \ud83d")])
    body = json.loads(wire.fresh_body(wanted).decode("utf-8"))
    assert "system" not in body
    assert "half \ufffd" in body["messages"][0]["content"][0]["text"]
    assert body["messages"][0]["content"][1]["text"] == "nul \ufffd"


def test_a_blank_prompt_is_no_block() -> None:
    body = json.loads(wire.fresh_body(request(user("go"), user_prompt="")))
    assert len(body["messages"][0]["content"]) == 1


def test_hashes_follow_the_recipe() -> None:
    history = [user("go"), assistant(text("naïve"), use("t1", inputs={"n": 1.0}))]
    first = hashlib.sha256(b'{"content":"go","role":"user"}').hexdigest()
    second_text = (
        '{"content":[{"text":"na\\u00efve","type":"text"},{"id":"t1","input":{"n":1},"name":"Read","type":"tool_use"}],'
        '"role":"assistant"}'
    )
    second = hashlib.sha256((first + second_text).encode("ascii")).hexdigest()
    assert wire.prefix_hashes(history) == [first, second]
    assert wire.prefix_hash(history) == second
    assert wire.prefix_hash([]) == ""


def test_hashes_see_the_conversation_alone() -> None:
    spoken = [user("a"), assistant("b")]
    others = [Message(role="system", content="x"), assistant("s", is_sidechain=True), assistant("h", partial=True)]
    assert wire.prefix_hashes([others[0], spoken[0], *others[1:], spoken[1]]) == wire.prefix_hashes(spoken)
    enveloped = [user("a", uuid="u-1", created_at="2026-11-30T00:00:00Z"), assistant("b", model="m", usage=usage(10))]
    assert wire.prefix_hashes(enveloped) == wire.prefix_hashes(spoken)


@pytest.mark.parametrize("content", ["text", [{"type": "text", "text": "text"}]])
def test_a_string_and_a_text_block_are_different_content(content: Any) -> None:  # noqa: ANN401 - a content
    expected = hashlib.sha256(jsonbytes.canonical({"role": "user", "content": content})).hexdigest()
    assert wire.prefix_hash([Message(role="user", content=content)]) == expected
