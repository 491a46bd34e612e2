"""What the usage in a conversation tells: how large the last request was, and how far our estimate is off.

Usage stands on assistant messages, repeated on every fragment of an answer. It counts the prompt of that answer, so
what a compaction removed later is still in it: such usage is stale.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compaction.core.messages import Message

MIN_RATIO, MAX_RATIO = 0.8, 4.0  # real tokens per estimated one, with room around what real sessions show (0.8 to 1.3)
MIN_EVIDENCE_TOKENS = 2_000  # below, what stands in no message (reminders, wrappers) drowns the ratio
MAX_EVIDENCE_STEPS = 64  # from answer to answer, the newest: what follows resembles them most
MAX_SKEW = 8  # a step whose real and estimated size differ more was no plain growth: cleared results, another prompt

Estimate = Callable[[Sequence[Message]], int]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last answer with usage: its fragments, and the messages that its usage does not count."""

    prompt_tokens: int
    output_tokens: int
    answer: tuple[Message, ...]
    since: tuple[Message, ...]


def countable(live: Sequence[Message]) -> Collection[int]:
    """The id() of each message of a live view whose usage is not stale.

    After a boundary of ours only stored messages over its covers_through_seq are new: what the compaction kept has no
    seq or a lower one. After any other boundary the preserved segment is old, up to its tail_uuid.
    """
    facts = (live[0].metadata or {}) if live and live[0].is_boundary else {}
    covers, segment = facts.get("covers_through_seq"), facts.get("preserved_segment")
    if isinstance(covers, int):
        return {id(message) for message in live if message.seq is not None and message.seq > covers}
    tail = segment.get("tail_uuid") if isinstance(segment, dict) else None
    kept = [place for place, message in enumerate(live) if tail is not None and message.uuid == tail]
    return {id(message) for message in live[kept[-1] + 1 if kept else 0 :]}


def last_answer(messages: Sequence[Message], counted: Collection[int]) -> Anchor | None:
    """The last answer whose usage counts, None without one. `messages` is a conversation, each uuid once."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        usage = message.usage if message.role == "assistant" and id(message) in counted else None
        if usage is not None and usage.total_tokens:
            fragments = _fragments(messages, place)
            own = set(fragments)
            between = [messages[other] for other in range(fragments[0], place) if other not in own]
            answer = tuple(messages[fragment] for fragment in fragments)
            return Anchor(usage.prompt_tokens, usage.output_tokens, answer, (*between, *messages[place + 1 :]))
    return None


def learned_ratio(messages: Sequence[Message], estimate: Estimate) -> float:
    """Real tokens per estimated one, from how prompts grew from answer to answer; 1.0 without enough evidence."""
    steps = list(pairwise(_answers(messages)))[-MAX_EVIDENCE_STEPS:]
    real = estimated = 0
    for (start, before), (end, after) in steps:
        part = messages[start:end]
        if after <= before or any(message.is_compact_summary for message in part):
            continue
        grown, expected = after - before, estimate(part)
        if grown <= MAX_SKEW * expected and expected <= MAX_SKEW * grown:
            real, estimated = real + grown, estimated + expected
    if estimated < MIN_EVIDENCE_TOKENS:
        return 1.0
    return min(max(real / estimated, MIN_RATIO), MAX_RATIO)


def _answers(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Place and prompt tokens of the first fragment with usage of each answer."""
    answers: list[tuple[int, int]] = []
    for place, message in enumerate(messages):
        prompt = message.usage.prompt_tokens if message.role == "assistant" and message.usage else 0
        if prompt and not (answers and answers[-1][1] == prompt):
            answers.append((place, prompt))
    return answers


def _fragments(messages: Sequence[Message], last: int) -> list[int]:
    """The places of the answer whose last fragment with usage stands at `last`.

    Results may stand between fragments of one id; without an id only direct neighbours are fragments.
    """
    end = messages[last]
    places = [last]
    for place in range(last - 1, -1, -1):
        message = messages[place]
        if message.role == "assistant":
            if not _same_answer(message, end):
                break
            places.append(place)
        elif end.api_message_id is None or not _has_results(message):
            break
    return places[::-1]


def _same_answer(fragment: Message, end: Message) -> bool:
    same_prompt = fragment.usage is None or end.usage is None or fragment.usage.prompt_tokens == end.usage.prompt_tokens
    return fragment.api_message_id == end.api_message_id and same_prompt


def _has_results(message: Message) -> bool:
    return not isinstance(message.content, str) and any(block["type"] == "tool_result" for block in message.content)
