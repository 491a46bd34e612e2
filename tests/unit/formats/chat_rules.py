"""OpenAI's rules for the messages of a chat completion, written down independently of the code that obeys them.

`broken_rules(messages)` names every rule that a list breaks; no names is a list that can be sent once the results of
calls that are still open at its end have been appended. The grounds are the API reference's message types and the
texts of its refusals: "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'", "An
assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", "string too
long. Expected a string with maximum length 40", "Invalid image data".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Json = Any

MEMBERS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")  # OpenAI's own servers take 64 of them; docs/formats.md says so
MAX_ID_CHARS = 40
ADDRESS = re.compile(r"https?://\S+|data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*")


def broken_rules(messages: list[Json]) -> list[str]:
    """The names of the rules that `messages` break."""
    found = [name for place, message in enumerate(messages) for name in _message_rules(message, place)]
    return found + list(_pair_rules(messages))


def _message_rules(message: Json, place: int) -> Iterator[str]:
    role, content = message["role"], message["content"]
    if role not in MEMBERS:
        yield f"there is no role {role}"
        return
    if unknown := set(message) - MEMBERS[role]:
        yield f"a message of the {role} has no {unknown}"
    if role == "system" and place:
        yield "the system prompt stands first"
    if content is None:
        if role != "assistant" or not message.get("tool_calls"):
            yield f"a message of the {role} without content"
    elif isinstance(content, str):
        if not content and role != "tool":
            yield f"an empty message of the {role}"
    else:
        yield from _part_rules(role, content)


def _part_rules(role: str, parts: list[Json]) -> Iterator[str]:
    if not parts:
        yield "a list without a part"
    for part in parts:
        match part:
            case {"type": "text", "text": str(text), **rest}:
                if not text or rest:
                    yield "a text part is a text and nothing else"
            case {"type": "image_url", "image_url": {"url": str(address), **rest}}:
                if role != "user" or rest:
                    yield f"an image of the {role}"
                if not ADDRESS.fullmatch(address):
                    yield "an image is no address and no data of a known kind"
            case _:
                yield f"a part of the type {part.get('type')}"


def _pair_rules(messages: list[Json]) -> Iterator[str]:
    """Each call has one answer, right behind its message, before anybody else speaks; the last ones may be open."""
    waiting: list[str] = []
    called: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield "an answer to no call that waits"
                continue
            waiting.remove(message["tool_call_id"])
            if len(message["tool_call_id"]) > MAX_ID_CHARS:
                yield "the id of an answered call is too long"
            continue
        if waiting:
            yield "somebody speaks before the calls are answered"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        for call in message.get("tool_calls", ()):
            yield from _call_rules(call, called)
            called.add(call["id"])


def _call_rules(call: Json, called: set[str]) -> Iterator[str]:
    if set(call) != {"id", "type", "function"} or call["type"] != "function":
        yield "a call is an id and a function"
    if not call["id"] or call["id"] in called:
        yield "the id of a call is missing or used twice"
    if set(call["function"]) != {"name", "arguments"} or not NAME.fullmatch(call["function"]["name"]):
        yield "a function has a name and arguments"
    try:
        json.loads(call["function"]["arguments"])
    except ValueError:
        yield "the arguments are no JSON"
