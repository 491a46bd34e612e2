"""Which messages of a live view a compaction replaces, and which stay word for word.

Scope `full` replaces everything, `up_to` everything through the named message, `from` the named message and everything
behind it. A cut never parts a call from its result nor an answer from its fragments, so the named message decides only
on which side it stands: where a cut right beside it is not safe, it moves to the next safe place on the side that
summarises more. So what the user pointed at is always in the summary, for `up_to` with what belongs to it behind it,
for `from` with what belongs to it before it.

A last round whose tool calls are still open always stays: its results may come yet (DESIGN §8). It is the one thing
that can keep the named message out of the summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.core import chronology, kept, rebuilt
from compaction.core.cuts import safe_cuts
from compaction.core.jobs import Scope
from compaction.core.messages import Message, conversation
from compaction.core.open_round import open_round
from compaction.errors import InvalidSession

UNKNOWN = (
    "The scope names a message that is not in the live conversation: its uuid is unknown, or an earlier compaction "
    "already covers it."
)
UNNAMED = "The scope needs the uuid of a message."


@dataclass(frozen=True, slots=True)
class Split:
    """`replaced` goes into the summary, in the order in which it happened; `kept` stays verbatim, in its own order.

    Together they are the whole conversation. The first `earlier` of the kept messages are older than what is replaced
    (scope `from`), the others are newer. `moved` says that the cut is not right beside the named message.
    """

    replaced: tuple[Message, ...]
    kept: tuple[Message, ...]
    earlier: int = 0
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Carried:
    """The kept messages as they stand in the result; the first `earlier` of them are older than the summary."""

    messages: tuple[Message, ...]
    earlier: int = 0


def split(messages: Sequence[Message], scope: Scope) -> Split:
    """The parts of a live view for a job's scope. Linear time.

    Raises InvalidSession when the scope names no message of the live conversation; a boundary, a sub-agent's message or
    a half streamed one cannot be named. `replaced` is empty when all that the scope names must stay.
    """
    if scope.kind == "full":
        return split_full(messages)
    spoken = chronology.chronological(messages)
    named = _place(spoken, scope.uuid)
    safe = [fine and not bound for fine, bound in zip(safe_cuts(spoken), chronology.bound(messages), strict=True)]
    if scope.kind == "up_to":
        cut = safe.index(True, named + 1)
        return _parted(messages, spoken, range(cut), moved=cut != named + 1)
    cut = max(place for place in range(named + 1) if safe[place])
    return _parted(messages, spoken, range(cut, len(spoken)), moved=cut != named)


def split_full(messages: Sequence[Message]) -> Split:
    """Everything is replaced but a last round whose tool calls are still open: its results may come yet (DESIGN §8)."""
    spoken = chronology.chronological(messages)
    return _parted(messages, spoken, range(len(spoken)))


def carried(parts: Split) -> Carried:
    """The kept messages made fit for the result: thinking gone, in one chain (`core.kept`)."""
    older, newer = parts.kept[: parts.earlier], parts.kept[parts.earlier :]
    earlier = len(kept.without_thinking(older))
    return Carried(kept.carried((*older, *newer)), earlier)


def _parted(messages: Sequence[Message], spoken: Sequence[Message], wanted: range, *, moved: bool = False) -> Split:
    """The split that replaces the messages at the `wanted` places, but for an open last round.

    What earlier compactions made to be made anew is replaced wherever it stands.
    """
    waiting = {id(message) for message in open_round(spoken)}
    replaced = tuple(
        message
        for place, message in enumerate(spoken)
        if rebuilt.is_rebuilt(message) or (place in wanted and id(message) not in waiting)
    )
    gone = {id(message) for message in replaced}
    stay = tuple(message for message in conversation(messages) if id(message) not in gone)
    older = {id(message) for message in spoken[: wanted.start]}
    return Split(replaced, stay, sum(id(message) in older for message in stay), moved)


def _place(spoken: Sequence[Message], uuid: str | None) -> int:
    if uuid is None:
        raise InvalidSession(UNNAMED)
    for place, message in enumerate(spoken):
        if message.uuid == uuid:
            return place
    raise InvalidSession(UNKNOWN)
