from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, message_from
from compaction.core.turns import Turn
from compaction.core.wire import api_messages
from compaction.formats.chat_messages import ChatMessages, tools_of
from compaction.formats.chat_output import chat_messages, chat_tools
from tests.unit.formats.chat_rules import broken_rules

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


def calling(*idents: str) -> Turn:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": one, "name": "look", "input": {}} for one in idents],
    }


def answering(ident: str, *content: Json) -> Turn:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": ident, "content": list(content)}]}


def test_while_a_call_of_the_round_is_open_a_picture_is_told_in_words() -> None:
    """A user message with the picture would stand before the second call's answer, which OpenAI refuses."""
    chat = chat_messages([{"role": "user", "content": "Look"}, calling("c1", "c2"), answering("c1", PNG)])
    assert chat[2:] == [{"role": "tool", "tool_call_id": "c1", "content": "[image omitted: image/png, 3 bytes]"}]
    assert broken_rules(chat) == []


def test_the_id_of_an_answered_call_is_shortened_and_that_of_an_open_one_stays() -> None:
    """Ids of vLLM have 46 characters; the result of the open call will come under its own."""
    first, second = "chatcmpl-tool-" + "1" * 32, "chatcmpl-tool-" + "2" * 32
    asked: Turn = {"role": "user", "content": "Look"}
    chat = chat_messages([asked, calling(first), answering(first), calling(second)])
    [short] = {message["tool_call_id"] for message in chat if message["role"] == "tool"}
    assert len(short) == 40
    assert [message["tool_calls"][0]["id"] for message in chat if message["role"] == "assistant"] == [short, second]
    assert broken_rules(chat) == []
    assert chat_messages([asked, calling(first), answering(first)]) == chat[:3]  # the same on every call


def test_what_says_nothing_is_left_out() -> None:
    blocks = [{"type": "search_result", "source": "s", "title": "t", "content": []}, {"type": "text", "text": "So?"}]
    assert chat_messages([{"role": "user", "content": blocks}]) == [{"role": "user", "content": "So?"}]


def test_pictures_of_other_kinds_are_told_in_words() -> None:
    sources: list[Json] = [
        {"type": "file", "file_id": "file_1"},
        {"type": "base64", "media_type": "image/tiff", "data": "aGk="},
        {"type": "url", "url": "ftp://example.com/a.png"},
    ]
    blocks = [{"type": "image", "source": source} for source in sources]
    [message] = chat_messages([{"role": "user", "content": blocks}])
    assert [part["type"] for part in message["content"]] == ["text", "text", "text"]
    assert "file_1" in message["content"][0]["text"]


def test_functions_are_given_and_the_tools_of_the_api_are_not() -> None:
    tools: Json = [
        {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}, "cache_control": {}},
        {"name": "Look", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"},
        "odd",
    ]
    assert chat_tools(tools) == [
        {"type": "function", "function": {"name": "Read", "description": "Reads.", "parameters": {"type": "object"}}},
        {"type": "function", "function": {"name": "Look", "parameters": {"type": "object"}}},
    ]
    assert tools_of(chat_tools(tools)) == [
        {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}},
        {"name": "Look", "input_schema": {"type": "object"}},
    ]
    assert chat_tools(None) == []
