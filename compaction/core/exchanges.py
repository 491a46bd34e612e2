"""Calls of client tools with their results, over a whole conversation as it is stored.

For rules that look at single results (clearing, analysis, files). What is sent is paired by `core.call_pairs`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from compaction.core.fields import ident
from compaction.core.messages import Block, Message

Place = tuple[int, int]  # the message's index, the block's index in it


class Exchange(NamedTuple):
    """One result and the call that it answers. A second result of one call is an exchange of its own."""

    call: Block
    call_at: Place
    result: Block
    result_at: Place

    @property
    def ident(self) -> str:
        """The call's id."""
        return ident(self.call.get("id"))


def exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """The exchanges in the order of their results. Linear time; messages outside the conversation are passed over.

    Ids are used again by some producers: a result belongs to the oldest open call with its id in the newest answer that
    has such a call; a further result of a call that was answered belongs to that call again. A result without a call is
    left out.
    """
    found: list[Exchange] = []
    calls = _Calls()
    for number, message in enumerate(messages):
        if not message.in_conversation:
            continue
        asking = message.role == "assistant"
        if not asking:
            calls.turn_over()
        if isinstance(message.content, str):
            continue
        wanted = "tool_use" if asking else "tool_result"
        for place, block in enumerate(message.content):
            if block["type"] != wanted:
                continue
            if asking:
                calls.ask(block, (number, place))
            elif (asked := calls.answered(block)) is not None:
                found.append(Exchange(*asked, block, (number, place)))
    return found


class _Calls:
    """The calls so far, by id."""

    def __init__(self) -> None:
        self._open: dict[str, deque[tuple[Block, Place]]] = {}
        self._turns: dict[str, int] = {}  # id → the turn of its open calls
        self._last: dict[str, tuple[Block, Place]] = {}
        self._turn = 0
        self._speaking = False

    def ask(self, block: Block, at: Place) -> None:
        """Remembers a call."""
        self._turn += not self._speaking
        self._speaking = True
        name = ident(block.get("id"))
        if self._turns.get(name) != self._turn:  # calls of an earlier answer with this id will get no result any more
            self._open[name], self._turns[name] = deque(), self._turn
        self._open[name].append((block, at))

    def turn_over(self) -> None:
        """The user has spoken: the next call belongs to another turn."""
        self._speaking = False

    def answered(self, result: Block) -> tuple[Block, Place] | None:
        """The call that a result belongs to, None without one."""
        name = ident(result.get("tool_use_id"))
        waiting = self._open.get(name)
        if waiting:
            self._last[name] = waiting.popleft()
        return self._last.get(name)
