"""Cache-edit micro-compaction: while the prompt cache is warm, the API itself clears old results (DESIGN §3).

The producer sends the returned `context_management` with its next requests, under the beta header BETA. Nothing is
rewritten: the history stays as it is, and no signed thinking block stands behind an edit of ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from compaction.core import microcompact
from compaction.core.exchanges import Exchange, Place, exchanges
from compaction.core.fields import CALLS, SERVER_CALLS
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Message
from compaction.core.tool_table import ToolTable

BETA = "context-management-2025-06-27"  # facts/anthropic.md §3c
EDIT = "clear_tool_uses_20250919"  # the same
TRIGGER_RESULTS = 20  # ours: at the usual 1,500 tokens of a read file 30,000 tokens, worth writing the cache anew


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEdit:
    """The decision. `context_management` is a request's field, ready to send.

    `cleared_ids` are the calls whose results it clears for the first time, oldest first; `saved_tokens` is our estimate
    of those.
    """

    context_management: dict[str, Json]
    cleared_ids: tuple[str, ...]
    saved_tokens: int
    clearable_results: int
    kept_results: int

    def event_fields(self) -> dict[str, Json]:
        """The fields of tengu_cached_microcompact; the ids that the API's field cannot name stand here."""
        return {
            "cleared_tool_ids": list(self.cleared_ids),
            "cleared_results": len(self.cleared_ids),
            "kept_results": self.kept_results,
            "clearable_results": self.clearable_results,
            "saved_tokens": self.saved_tokens,
            "context_management": self.context_management,
        }


def cache_edit(  # noqa: PLR0913 - the rule's numbers
    messages: Sequence[Message],
    *,
    cache_warm: bool,
    table: ToolTable,
    trigger_results: int = TRIGGER_RESULTS,
    keep_results: int = microcompact.KEEP_RESULTS,
    already_cleared: AbstractSet[str] = frozenset(),
    tools: Json = None,
) -> CacheEdit | None:
    """The edit that clears what `time_based` would, when more than `trigger_results` results can be cleared; else None.

    Results that an earlier edit cleared (`already_cleared`, by the ids of their calls) do not count again.

    The API cannot be told ids. It counts tool uses: once there are more than `trigger`, it clears all but the newest
    `keep`, passing over the tools in `exclude_tools`. So the tools that must not be cleared are excluded by name, those
    in the history and those declared in `tools`; `keep` counts the uses of all others from the oldest kept result on,
    open calls included; and `trigger` is the same number, which this history is over. When the session grows, the API
    goes on clearing one old use per new one; whoever asks us again gets a larger `keep`.
    """
    if not cache_warm:
        return None
    excluded = _excluded(messages, table, tools)
    found = _clearable(messages, excluded)
    border = max(0, len(found) - keep_results)
    new = [one for one in found[:border] if one.ident not in already_cleared]
    countable = len(new) + sum(one.ident not in already_cleared for one in found[border:])
    saved = sum(max(0, microcompact.saving(one.result)) for one in new)
    if not new or countable <= trigger_results or saved < microcompact.MIN_SAVED_TOKENS:
        return None
    keep = sum(place > found[border - 1].call_at for place in _uses(messages, excluded))
    edit = {
        "type": EDIT,
        "trigger": {"type": "tool_uses", "value": max(1, keep)},
        "keep": {"type": "tool_uses", "value": keep},
        "exclude_tools": sorted(excluded),
    }
    return CacheEdit(
        context_management={"edits": [edit]},
        cleared_ids=tuple(one.ident for one in new),
        saved_tokens=saved,
        clearable_results=countable,
        kept_results=len(found) - border,
    )


def _clearable(messages: Sequence[Message], excluded: AbstractSet[str]) -> list[Exchange]:
    """The last exchange of each call that the API may clear and that shows something yet, in the order of the calls."""
    found = {one.call_at: one for one in exchanges(messages) if _may(one.call.get("name"), excluded)}
    return [one for _, one in sorted(found.items()) if one.result.get("content") != microcompact.CLEARED]


def _may(name: Json, excluded: AbstractSet[str]) -> bool:
    return isinstance(name, str) and name not in excluded


def _uses(messages: Sequence[Message], excluded: AbstractSet[str]) -> Iterator[Place]:
    """The places of all tool uses that the API counts."""
    for number, message in enumerate(messages):
        for place, block in _calls(message):
            if block["name"] not in excluded:
                yield number, place


def _excluded(messages: Sequence[Message], table: ToolTable, tools: Json) -> frozenset[str]:
    """The names that the API must pass over: tools outside the table, and those that the API runs itself."""
    declared = [tool.get("name") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    called = {name for name in declared if isinstance(name, str)}
    served: set[str] = set()
    for message in messages:
        for _, block in _calls(message):
            (served if block["type"] in SERVER_CALLS else called).add(block["name"])
    return frozenset((*served, *(name for name in called if not table.compactable(name))))


def _calls(message: Message) -> list[tuple[int, Block]]:
    """The calls of an answer that have a name, with their places."""
    if message.role != "assistant" or not message.in_conversation or isinstance(message.content, str):
        return []
    return [
        (place, block)
        for place, block in enumerate(message.content)
        if block["type"] in CALLS and isinstance(block.get("name"), str)
    ]
