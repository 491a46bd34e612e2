"""Where a conversation can be cut in two so that no call is parted from its result and no answer from its fragments."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import accumulate

from compaction.core import grouping
from compaction.core.fields import CALLS, ident, is_server_result
from compaction.core.messages import Message


def safe_cuts(spoken: Sequence[Message]) -> list[bool]:
    """For each place from 0 to len(spoken) whether a cut right before the message there is safe. Linear time.

    `spoken` is a conversation. The first and the last place are always safe. A call without a result binds nothing;
    of several results of one call only the first is bound to it.
    """
    changes = [0] * (len(spoken) + 2)
    for first, last in (*_pairs(spoken), *_answers(spoken)):
        changes[first + 1] += 1  # a cut before `first` is safe, one before `last` is not
        changes[last + 1] -= 1
    return [held == 0 for held in accumulate(changes[: len(spoken) + 1])]


def _pairs(spoken: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """First and last message of each pair of a call and its result, client tools and server tools alike."""
    waiting: dict[str, tuple[int, int]] = {}  # id → the message of its newest calls, how many are open
    for number, message in enumerate(spoken):
        for block in [] if isinstance(message.content, str) else message.content:
            kind = block["type"]
            if kind in CALLS:
                name = ident(block.get("id"))
                at, count = waiting.get(name, (number, 0))
                waiting[name] = (number, count + 1 if at == number else 1)
            elif kind == "tool_result" or is_server_result(kind):
                name = ident(block.get("tool_use_id"))
                at, count = waiting.get(name, (number, 0))
                if count:
                    waiting[name] = (at, count - 1)
                    yield at, number


def _answers(spoken: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """First and last fragment of each answer."""
    places: defaultdict[int, deque[int]] = defaultdict(deque)
    for number, message in enumerate(spoken):
        places[id(message)].append(number)
    for one in grouping.rounds(spoken):
        numbers = [places[id(message)].popleft() for message in one.messages]
        fragments = [number for number in numbers if spoken[number].role == "assistant"]
        if fragments:
            yield fragments[0], fragments[-1]
