from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, message_from
from compaction.core.turns import Turn
from compaction.core.wire import api_messages
from compaction.formats.chat_messages import ChatMessages
from compaction.formats.chat_output import chat_messages

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
texts = words.map(lambda text: {"type": "text", "text": text})
inputs = st.dictionaries(words, st.one_of(words, st.integers(), st.booleans(), st.none()), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[Turn]:
    """Valid turns: a question, then rounds of answers with calls and their results, ids unique."""
    turns: list[Turn] = [{"role": "user", "content": draw(words)}]
    for number in range(draw(st.integers(0, 4))):
        count = draw(st.integers(0, 3))
        asked = [
            {"type": "tool_use", "id": f"c{number}_{place}", "name": "look", "input": draw(inputs)}
            for place in range(count)
        ]
        said = draw(st.lists(texts, min_size=0 if asked else 1, max_size=2))
        turns.append({"role": "assistant", "content": said + asked})
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block["id"],
                "content": draw(st.one_of(words, st.lists(texts, min_size=2))),
            }
            for block in asked
        ]
        spoken = draw(st.lists(st.one_of(texts, st.just(PNG)), min_size=0 if results else 1, max_size=2))
        turns.append({"role": "user", "content": results + spoken})
    return turns


def back(chat: list[dict[str, Json]]) -> tuple[list[Message], str | None]:
    reader = ChatMessages()
    messages = []
    for place, value in enumerate(chat):
        found = reader.add(value, json.dumps(value).encode(), line=place, place=place)
        messages += [message_from({"role": one.role, "content": one.content}) for one in found]
    messages += [message_from({"role": one.role, "content": one.content}) for one in reader.end()]
    return messages, reader.system_prompt


def plain(turns: list[Turn]) -> list[Turn]:
    """Strings as text blocks, so that two ways to write the same content are equal."""
    return [{"role": turn["role"], "content": _blocks(turn["content"])} for turn in turns]


def _blocks(content: Json) -> Json:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block | ({"content": _blocks(block["content"])} if "content" in block else {}) for block in content]


@given(conversations())
def test_there_and_back_keeps_roles_texts_images_and_pairs(turns: list[Turn]) -> None:
    messages, system = back(chat_messages(turns, "Be kind."))
    assert plain(api_messages(messages)) == plain(turns)
    assert system == "Be kind."


def test_a_tool_message_holds_text_and_its_pictures_follow_as_the_users() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "Seen."}, PNG]}
    turns: list[Turn] = [
        {"role": "user", "content": "Look"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
        {"role": "user", "content": [result]},
    ]
    assert chat_messages(turns)[1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "Seen."},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}],
        },
    ]


def test_thinking_is_left_out_and_arguments_that_were_no_json_come_back_as_they_were() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "tool_use", "id": "c", "name": "look", "input": {"_raw_arguments": '{"a": '}},
    ]
    (message,) = chat_messages([{"role": "assistant", "content": blocks}])
    assert message["content"] is None
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a": '


def test_a_system_prompt_of_blocks_is_one_system_message() -> None:
    system = [{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Be short.", "cache_control": {}}]
    assert chat_messages([], system) == [{"role": "system", "content": "Be kind.\n\nBe short."}]
