"""A request that shares the main conversation's prompt cache: everything as the session sent it, plus one user message.

The rules are in facts/anthropic.md §6. The cache reads a prefix that is equal in model, tools, system, request settings
and messages. Cache marks are not part of it, so they may be moved; everything else must not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import is_not
from typing import Protocol

from compaction.core import jsonbytes
from compaction.core.blocks import text_block, without_marks
from compaction.core.characters import MARK, clean_text, clean_value
from compaction.core.fields import SIGNED
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.core.repair import repair
from compaction.core.server_summaries import first_behind_ours
from compaction.core.turns import Turn, blocks_of, merge

MAX_MARKS = 4  # facts/anthropic.md §6: breakpoints in one request
MARK_VALUE = {"type": "ephemeral"}  # five minutes, like the main conversation's usual one; a hit costs the same for any

# What the session's own request may set: each belongs to what the cache compares, or to where and how fast it runs.
# Left out on purpose: stop_sequences (would cut the summary), stream and max_tokens (ours), cache_control (would mark
# our prompt), compaction, thread, fallbacks (would make another kind of request), and our own bookkeeping.
REQUEST_FIELDS = (
    "thinking", "tool_choice", "output_config", "context_management", "mcp_servers", "container", "metadata",
    "service_tier", "speed", "inference_geo",
)  # fmt: skip


class PrefixNotShareable(ValueError):
    """The session's messages cannot be sent as they are, so no cache can be shared: make a fresh request."""


class SharedRequest(Protocol):
    """What a shared request is made of; `ports.SummaryRequest` has it."""

    @property
    def model(self) -> str:
        """The session's own model."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """What is summarised, as stored."""
        ...

    @property
    def user_prompt(self) -> str:
        """The finished prompt that is appended as one user message."""
        ...

    @property
    def max_output_tokens(self) -> int:
        """The most that the model may write, thinking included."""
        ...

    @property
    def session_system(self) -> Json:
        """The session's own system prompt, a string or text blocks."""
        ...

    @property
    def session_tools(self) -> Json:
        """The session's own tools."""
        ...

    @property
    def session_request(self) -> Json:
        """The session's own request settings: thinking, tool_choice, effort, betas and the like."""
        ...


def shared_prefix_body(request: SharedRequest) -> tuple[bytes, tuple[str, ...]]:
    """The JSON body of a streaming request, and the beta headers to send with it.

    Raises PrefixNotShareable when the messages would need any repair, when a call is open at the end, when a summary of
    the API's own would make it forget ours, when the session forces a tool call, or when its thinking budget leaves no
    room for the answer.
    """
    if first_behind_ours(request.messages) is not None:
        raise PrefixNotShareable("a summary of the API's own stands behind one of ours")
    settings = request.session_request if isinstance(request.session_request, dict) else {}
    tally: Counter[str] = Counter()
    front = clean_value([request.session_tools or [], request.session_system or [], _settings(settings)], tally)
    turns, report = repair(merge(request.messages), close_open=True, faithful=True)
    if tally or report.total or not turns:
        raise PrefixNotShareable(f"needs repair: {', '.join(sorted({*tally, *report.counts})) or 'no messages'}")
    tools, system, fields = front
    _check_room(fields, request.max_output_tokens)
    tools, room = _fewer_marks(tools, MAX_MARKS - 1)
    system, room = _fewer_marks(system, room)
    prompt = {"role": "user", "content": [text_block(clean_text(request.user_prompt, tally))]}
    body = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "stream": True,
        **fields,
        **({"tools": tools} if tools else {}),
        **({"system": system} if system else {}),
        "messages": [*_marked(turns, room), prompt],
    }
    return jsonbytes.encode(body), _betas(settings)


def _settings(settings: dict[str, Json]) -> dict[str, Json]:
    """The request fields that the session sets; `effort` is short for output_config.effort."""
    fields = {name: settings[name] for name in REQUEST_FIELDS if settings.get(name) is not None}
    effort = settings.get("effort")
    output = fields.get("output_config", {})
    if isinstance(effort, str) and isinstance(output, dict):
        fields["output_config"] = {"effort": effort} | output
    return fields


def _betas(settings: dict[str, Json]) -> tuple[str, ...]:
    betas = settings.get("betas")
    return tuple(beta for beta in betas if isinstance(beta, str)) if isinstance(betas, list) else ()


def _check_room(fields: dict[str, Json], max_output_tokens: int) -> None:
    choice, thinking = fields.get("tool_choice"), fields.get("thinking")
    if isinstance(choice, dict) and choice.get("type") not in ("auto", "none"):
        raise PrefixNotShareable("the session forces a tool call, so the model could not answer with a summary")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if isinstance(budget, int) and budget >= max_output_tokens:
        raise PrefixNotShareable("the session's thinking budget leaves no room for a summary")


def _fewer_marks(items: Json, room: int) -> tuple[Json, int]:
    """Tools or system blocks with at most `room` cache marks, the first ones, and the room that is left."""
    if not isinstance(items, list):
        return items, room
    kept: list[Json] = []
    for item in items:
        marked = isinstance(item, dict) and item.get(MARK) is not None
        kept.append(_without_mark(item) if marked and not room else item)
        room -= bool(marked and room)
    return kept, room


def _marked(turns: Sequence[Turn], room: int) -> list[Turn]:
    """The turns with one mark where the main conversation's last request ended, and the newest `room` marks before it.

    That request ended with the user turn before the last answer: the mark there reads what it wrote, and nothing is
    written twice. Marks inside results and after that place go.
    """
    end = _main_end(turns)
    marked: list[Turn] = []
    for number in range(len(turns) - 1, -1, -1):
        blocks = blocks_of(turns[number]["content"])
        kept = [without_marks(block) for block in blocks]
        for place in range(len(blocks) - 1, -1, -1):
            value = MARK_VALUE if (number, place) == end else blocks[place].get(MARK)
            if (number, place) == end or (value is not None and room and (number, place) < end):
                kept[place] = {**kept[place], MARK: value}
                room -= (number, place) != end
        same = not any(map(is_not, kept, blocks))
        marked.append(turns[number] if same else {"role": turns[number]["role"], "content": kept})
    return marked[::-1]


def _main_end(turns: Sequence[Turn]) -> tuple[int, int]:
    """Turn and place of the last block of the main conversation's last request."""
    answers = [number for number, turn in enumerate(turns) if turn["role"] == "assistant"]
    number = answers[-1] - 1 if answers and answers[-1] else len(turns) - 1
    blocks = blocks_of(turns[number]["content"])
    markable = [place for place, block in enumerate(blocks) if block["type"] not in SIGNED]
    return number, markable[-1]


def _without_mark(item: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in item.items() if key != MARK}
