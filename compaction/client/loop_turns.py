"""An agent loop's own messages as turns {role, content} in plain JSON: what is stored, hashed and compared.

Loops append the SDK's objects as they came and move cache marks about from call to call. Neither changes what was said,
so both are levelled here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.core.jsonbytes import Json

ROLES = frozenset({"user", "assistant"})
_MARK = "cache_control"


def turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Json]]:
    """The messages as plain turns. Raises ValueError for one that the Messages API would not take as a message."""
    return [_turn(place, message) for place, message in enumerate(messages)]


def response_fields(reply: object) -> dict[str, Json]:
    """What a model's response (the SDK's or its JSON) adds to the envelope of its message: id, model and usage."""
    if reply is None:
        return {}
    told = _plain(reply)
    if not isinstance(told, Mapping):
        return {}
    names = {"id": "api_message_id", "model": "model", "usage": "usage"}
    return {name: told[key] for key, name in names.items() if told.get(key) is not None}


def _turn(place: int, message: Mapping[str, Any]) -> dict[str, Json]:
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise ValueError(f"messages[{place}] is neither the user's nor the assistant's; a system prompt is no message")
    if isinstance(content, str):
        return {"role": role, "content": content}
    if not isinstance(content, Sequence):
        raise ValueError(f"messages[{place}] has no content: a text or a list of blocks")  # noqa: TRY004 - bad data
    return {"role": role, "content": [_unmarked(_plain(block)) for block in content]}


def _plain(value: Any) -> Json:  # noqa: ANN401 - any object of an SDK
    """`value` as JSON; the SDK's objects are pydantic models."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True) if callable(dump) else value


def _unmarked(value: Json) -> Json:
    """A block without cache marks, its own and those of the blocks in it; everything else is left alone."""
    if not isinstance(value, Mapping):
        return value
    block = {name: part for name, part in value.items() if name != _MARK}
    inner = block.get("content")
    if isinstance(inner, list):
        block["content"] = [_unmarked(_plain(part)) for part in inner]
    return block


def unanswered(turns: Sequence[Mapping[str, Json]], smaller: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
    """The user's turns of the list that no answer follows, as far as a smaller list in its place has lost their words.

    A compaction summarises them with all the rest, and the model would answer the summary. Results of tools are left
    out: their calls are in the summary.
    """
    held = [block for turn in _after_the_last_answer(smaller) for block in _blocks(turn)]
    lost: list[dict[str, Json]] = []
    for turn in _after_the_last_answer(turns):
        blocks = [block for block in _blocks(turn) if _is_said(block) and block not in held]
        if blocks:
            lost.append({"role": "user", "content": turn["content"] if isinstance(turn["content"], str) else blocks})
    return lost


def _after_the_last_answer(turns: Sequence[Mapping[str, Json]]) -> Sequence[Mapping[str, Json]]:
    start = max((place for place, turn in enumerate(turns, 1) if turn["role"] == "assistant"), default=0)
    return turns[start:]


def _blocks(turn: Mapping[str, Json]) -> list[Json]:
    content = turn["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _is_said(block: Json) -> bool:
    """Whether a block says something by itself: no tool's result, no blank text."""
    if not isinstance(block, Mapping) or block.get("type") == "tool_result":
        return False
    return block.get("type") != "text" or bool(str(block.get("text", "")).strip())
