"""The head cut: what is left out when a request is too long (DESIGN §3 "Prompt too long" and §8).

The oldest whole rounds go until the gap is covered; the newest round always stays. An earlier summary at the head is
not a round: it carries everything before it and stays. A round that could not be sent even alone loses the middle of
its largest texts instead (`core.shortening`). Each cut makes the request strictly smaller by the same measure or
raises the refusal.

Sizes come in two units that need not agree: the provider's (its refusal's gap, actual and limit) and our own measure.
The provider's count of what we sent calibrates ours: to go from `actual` to `limit` we keep the same share of our own
size. Nothing here is stored: calling `cut` again with the same arguments gives the same messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from compaction.core import grouping, shortening, tokens
from compaction.core.messages import Message
from compaction.core.results import Dropped
from compaction.core.room import Measure, Room
from compaction.errors import PromptTooLong

MAX_CUTS = 3  # DESIGN §3: at most three retries
# DESIGN §3: of the rounds, when the gap is unknown. Each further cut takes as much more, because the one before was not
# enough: three times a fifth leaves half of a session, and the refusals have just shown that our estimate is wrong.
SHARE_PERCENT = 20
MIN_GAIN_PERCENT = 10  # when a fifth of the rounds holds less of the tokens, tokens decide instead of rounds
SPARE_PERCENT = (
    5  # an in-place cut comes so far under its target: it has no slack of half a round, and a retry costs more
)
MIN_OUTPUT_TOKENS = 8_000  # DESIGN §8: with so much room beside the input, less output is asked for instead of a cut

RETRY_MARKER = "[The oldest part of this conversation is left out here, because the whole was too long for the model.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What is left and what is missing. Tokens are our estimate; seqs are None where no dropped message has one.

    `dropped_tokens` counts whole rounds and what in-place cuts took; `shortened_messages` are the messages that such
    a cut changed and `left_out_characters` what they lost; `remaining` is the measured size of what is left.
    """

    messages: tuple[Message, ...]
    dropped_rounds: int = 0
    dropped_messages: int = 0
    dropped_tokens: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    shortened_messages: int = 0
    left_out_characters: int = 0
    media_removed: int = 0
    remaining_rounds: int = 0
    remaining: int = 0

    @property
    def dropped(self) -> Dropped:
        """The three numbers of the result."""
        return Dropped(self.dropped_rounds, self.dropped_messages, self.dropped_tokens)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A request's messages taken apart, with sizes by the measure that decides."""

    head: tuple[Message, ...]  # boundary and earlier summary: never dropped
    rounds: tuple[tuple[Message, ...], ...]
    sizes: tuple[int, ...]  # one per round
    base: int  # the head and everything beside the messages
    measure: Measure
    speaker: Message | None  # the first of the head that is no system message: who opens a request, whatever goes
    marker_size: int
    media_removed: int = 0

    @property
    def total(self) -> int:
        return self.base + sum(self.sizes)

    def left(self, index: int) -> tuple[Message, ...]:
        """The head and the rounds from `index` on."""
        return (*self.head, *(message for one in self.rounds[index:] for message in one))


def cut(messages: Sequence[Message], refusal: PromptTooLong, *, attempt: int = 1, room: Room | None = None) -> Cut:
    """The messages of the next try after `refusal`; `attempt` counts the cuts from 1.

    A known gap is covered by whole rounds. An unknown gap, or one that is only a lower bound, costs a fifth of the
    rounds (at least one; two fifths at the second cut, three at the third), or more where that is a poor share of the
    tokens or our estimate says that it cannot be enough. A byte or media limit takes the media first, and that is
    enough where the refusal has no numbers. Raises `refusal` after three cuts and when nothing more can be cut.
    """
    if attempt > MAX_CUTS:
        raise refusal
    room = room or Room()
    measure, fixed = (room.measure_bytes, 0) if refusal.unit == "bytes" else (room.measure, room.fixed_tokens)
    before = without_marker(messages)
    total = fixed + sum(map(measure, before))
    lighter, media = (before, 0) if refusal.unit == "tokens" else shortening.without_media(before)
    parts = _parts(lighter, fixed, measure, media)
    if refusal.unit == "media" or (parts.total < total and _gap(refusal) is None):
        found = _cut_of(parts, 0)
        gained = media > 0
    else:
        found = _fitted(parts, _target(parts, total, refusal, room, SHARE_PERCENT * attempt))
        gained = found.remaining < total
    if not gained:
        raise refusal
    return found


def plan_cut(
    messages: Sequence[Message], fits_tokens: int, *, counted: int | None = None, room: Room | None = None
) -> Cut | None:
    """The cut that makes a request fit before it is sent, None when it fits as it is; uses up none of the retries.

    `fits_tokens` is the most that messages and everything beside them may take; `counted` is the provider's count of
    this request (`count_tokens`), which calibrates our own. Raises PromptTooLong when nothing can be cut.
    """
    room = room or Room()
    parts = _parts(without_marker(messages), room.fixed_tokens, room.measure)
    size = parts.total if counted is None else counted
    if size <= fits_tokens:
        return None
    found = _fitted(parts, parts.total * fits_tokens // size)
    if found.remaining >= parts.total:
        raise PromptTooLong(gap=size - fits_tokens, actual=size, limit=fits_tokens)
    return found


def lower_output(refusal: PromptTooLong, max_tokens: int) -> int | None:
    """A smaller max_tokens that makes the request fit without a cut, None when there is none of at least 8,000 tokens.

    Only where the refusal proves with its numbers that the input alone leaves that much room. When the provider
    counted more output than we asked for (a gateway adds its own), we ask for less by the gap. The caller counts
    these tries too: each is strictly smaller, but only a little where the gap is.
    """
    if not refusal.output_first or refusal.actual is None or refusal.limit is None or refusal.gap is None:
        return None
    room = refusal.limit - refusal.actual
    lower = room if room < max_tokens else max_tokens - refusal.gap
    return lower if MIN_OUTPUT_TOKENS <= lower < max_tokens else None


def retry_marker() -> Message:
    """The meta message that opens a request whose first round begins with the assistant."""
    return Message(role="user", content=RETRY_MARKER, is_meta=True)


def without_marker(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without the retry markers at their head, so that a marker never counts as a round or piles up."""
    lead = sum(1 for _ in takewhile(_in_lead, messages))
    return (*(message for message in messages[:lead] if not _is_marker(message)), *messages[lead:])


def _in_lead(message: Message) -> bool:
    return _is_marker(message) or _in_head(message)


def _is_marker(message: Message) -> bool:
    return message.is_meta and message.content == RETRY_MARKER


def _in_head(message: Message) -> bool:
    return message.is_compact_summary or message.role == "system"


def _parts(messages: Sequence[Message], fixed: int, measure: Measure, media: int = 0) -> _Parts:
    head = tuple(takewhile(_in_head, messages))
    rounds = tuple(tuple(one.messages) for one in grouping.rounds(messages[len(head) :]))
    sizes = tuple(sum(map(measure, one)) for one in rounds)
    base = fixed + sum(map(measure, head))
    return _Parts(head, rounds, sizes, base, measure, _speaker(head), measure(retry_marker()), media)


def _gap(refusal: PromptTooLong) -> int | None:
    """By how much the request was too long, None when the refusal does not say or says nonsense."""
    gap = refusal.gap
    if gap is None and refusal.actual is not None and refusal.limit is not None:
        gap = refusal.actual - refusal.limit
    return gap if gap is not None and gap > 0 else None


def _target(parts: _Parts, total: int, refusal: PromptTooLong, room: Room, percent: int) -> int:
    """How large everything may be after the cut, in our measure; `total` is its size as it was refused."""
    gap = _gap(refusal)
    fits = room.fits_tokens if refusal.unit == "tokens" else refusal.limit
    known = None if gap is None else _share_left(total, gap, refusal.actual, refusal.limit or fits)
    if known is not None and not refusal.lower_bound:
        return known
    return min(size for size in (parts.total - _oldest(parts, percent), fits, known) if size is not None)


def _share_left(total: int, gap: int, actual: int | None, limit: int | None) -> int | None:
    """What of `total` may stay so that the provider's count falls by `gap`; None when no proportion is known."""
    if actual is None and limit is not None:
        actual = gap + limit
    if actual is not None and actual > gap:
        return total * (actual - gap) // actual
    return total - gap if total > gap else None


def _oldest(parts: _Parts, percent: int) -> int:
    """The size of the oldest `percent` of the rounds; that share of all of them where it holds little."""
    if len(parts.rounds) < 2:  # noqa: PLR2004 - none may go, so texts have to
        return max(1, parts.total * percent // 100)
    size = sum(parts.sizes[: max(1, len(parts.rounds) * percent // 100)])
    whole = sum(parts.sizes)
    return size if size * 100 * SHARE_PERCENT >= whole * MIN_GAIN_PERCENT * percent else max(1, whole * percent // 100)


def _fitted(parts: _Parts, target: int) -> Cut:
    """The cut that comes under `target`: giant rounds are shortened in place, or else dropped when they are old."""
    found = _cut_to(parts, target, _shares(parts, target))
    return found if found.remaining <= target else _cut_to(parts, target, parts.sizes)


def _shares(parts: _Parts, target: int) -> tuple[int, ...]:
    """Each round's size; for one that alone is over the target what the others leave it, at least half the target."""
    free = target - parts.base
    others = sum(size for size in parts.sizes if size <= free)
    giants = sum(size > free for size in parts.sizes)
    share = max(free - others, free // 2, 0) // max(giants, 1)
    return tuple(share if size > free else size for size in parts.sizes)


def _cut_to(parts: _Parts, target: int, sizes: Sequence[int]) -> Cut:
    """The cut that drops the oldest rounds until `sizes` come under `target`; what is still over it is shortened."""
    left = sum(sizes)
    index = 0
    while index < len(sizes) - 1 and parts.base + left + _marker_size(parts, index) > target:
        left -= sizes[index]
        index += 1
    size = parts.base + sum(parts.sizes[index:]) + _marker_size(parts, index)
    if size <= target:
        return _cut_of(parts, index)
    spare = max(0, target) * SPARE_PERCENT // 100
    return _cut_of(parts, index, shortening.shortened(parts.left(index), size - target + spare, parts.measure))


def _marker_size(parts: _Parts, index: int) -> int:
    return parts.marker_size if _needs_marker(parts, index) else 0


def _needs_marker(parts: _Parts, index: int) -> bool:
    """Whether the head and the rounds from `index` on begin with the assistant; asked for each round that goes."""
    rounds = parts.rounds[index : index + 1]
    first = parts.speaker or next((found for one in rounds if (found := _speaker(one))), None)
    return first is not None and first.role == "assistant"


def _speaker(messages: Sequence[Message]) -> Message | None:
    return next((message for message in messages if message.role != "system"), None)


def _cut_of(parts: _Parts, index: int, shorter: shortening.Shortened | None = None) -> Cut:
    """The cut that drops the rounds before `index`, with the marker and the counts."""
    gone = tuple(message for one in parts.rounds[:index] for message in one)
    whole = parts.left(index)
    left = shorter or shortening.Shortened(whole)
    seqs = [message.seq for message in gone if message.seq is not None]
    head = len(parts.head)
    marker = (retry_marker(),) if _needs_marker(parts, index) else ()
    messages = (*left.messages[:head], *marker, *left.messages[head:])
    size = parts.base + sum(parts.sizes[index:]) + _marker_size(parts, index)
    saved = 0 if shorter is None else sum(map(parts.measure, whole)) - sum(map(parts.measure, left.messages))
    return Cut(
        messages=messages,
        dropped_rounds=index,
        dropped_messages=len(gone),
        dropped_tokens=_tokens(gone) + max(0, _tokens(whole) - _tokens(left.messages) if shorter else 0),
        first_seq=min(seqs, default=None),
        last_seq=max(seqs, default=None),
        shortened_messages=left.changed,
        left_out_characters=left.characters,
        media_removed=parts.media_removed,
        remaining_rounds=len(parts.rounds) - index,
        remaining=size - saved,
    )


def _tokens(messages: Sequence[Message]) -> int:
    return sum(map(tokens.estimate_message, messages))
