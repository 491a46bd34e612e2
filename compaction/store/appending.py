"""What a batch of messages does to a history, decided before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to store: its exact JSON bytes and the facts that queries need.

    `starts_live` marks a boundary or an earlier summary: the live view begins with the newest of them.
    """

    body: bytes = field(repr=False)
    uuid: str | None
    role: str
    partial: bool = False
    starts_live: bool = False


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append did. Every message of the batch counts in one of the three numbers."""

    head_seq: int
    appended: int
    duplicates: int
    replaced: int


@dataclass(frozen=True, slots=True)
class Known:
    """Where a message of the same uuid stands already."""

    seq: int
    partial: bool


@dataclass(slots=True)
class AppendPlan:
    """`added` get the seqs after the head, in order; `replaced` are rewritten in place, `removed` moved to the end."""

    added: list[NewMessage] = field(default_factory=list)
    replaced: dict[int, NewMessage] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    duplicates: int = 0
    replacements: int = 0

    def boundary_seq(self, head_seq: int) -> int:
        """The seq of the newest message in the plan that starts a live view, 0 for none."""
        added = [head_seq + place for place, message in enumerate(self.added, 1) if message.starts_live]
        return max([*added, *(seq for seq, message in self.replaced.items() if message.starts_live)], default=0)

    def outcome(self, head_seq: int) -> Appended:
        """The answer to the producer; `head_seq` is the head before the append."""
        return Appended(
            head_seq=head_seq + len(self.added),
            appended=len(self.added) - len(self.removed),
            duplicates=self.duplicates,
            replaced=self.replacements,
        )


def plan(batch: Sequence[NewMessage], known: Mapping[str, Known], covered_seq: int) -> AppendPlan:
    """Sorts a batch into new messages, duplicates (the first one stays) and the final forms of partial ones.

    A partial message is replaced where it stands, except at or below `covered_seq`: there a compaction has passed it
    by, so its final form goes to the end, where the next view sees it.
    """
    made = AppendPlan()
    places: dict[str, int] = {}
    for message in batch:
        if message.uuid is None:
            made.added.append(message)
        elif message.uuid in places:
            _meet_in_batch(made, places[message.uuid], message)
        elif message.uuid in known:
            _meet_stored(made, known[message.uuid], covered_seq, places, message)
        else:
            places[message.uuid] = len(made.added)
            made.added.append(message)
    return made


def _meet_in_batch(made: AppendPlan, place: int, message: NewMessage) -> None:
    if made.added[place].partial:
        made.added[place] = message
        made.replacements += 1
    else:
        made.duplicates += 1


def _meet_stored(
    made: AppendPlan, stored: Known, covered_seq: int, places: dict[str, int], message: NewMessage
) -> None:
    earlier = made.replaced.get(stored.seq)
    if not (stored.partial if earlier is None else earlier.partial):
        made.duplicates += 1
        return
    made.replacements += 1
    if stored.seq > covered_seq:
        made.replaced[stored.seq] = message
        return
    made.removed.append(stored.seq)
    places[message.uuid or ""] = len(made.added)
    made.added.append(message)
