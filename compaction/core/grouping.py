"""Rounds: one answer of the model and everything until its next one. A cut between rounds parts no call and result.

The rules, in the order of the messages:
1. What stands before the first assistant message is round 0.
2. An assistant message with a new api_message_id starts a round. Without ids, assistant messages that follow each other
   directly are one answer.
3. A later fragment with an id seen before joins that id's round, unless the user has spoken since or both carry usage
   with different prompts: then the id was used again for another answer (some servers give every answer the same id).
4. An answer that follows another one directly, while calls of that one are open, continues its round: the user turn
   after both holds the results of both.
5. A message of nothing but results of one earlier round's open calls joins that round. Of several calls with one id the
   newest is meant.
6. Everything else, messages outside the conversation too, stays in the round where it stands.

A result that comes after other answers in one message with other content cannot be moved without moving what the user
said; it stays where it is, and `core.repair` tells it as text there. So does one that was stored before its call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from compaction.core.fields import ident
from compaction.core.messages import Block, Message


@dataclass(frozen=True, slots=True)
class Round:
    """One round: its place among the rounds from 0, and its messages in order."""

    index: int
    messages: tuple[Message, ...]


def rounds(messages: Iterable[Message]) -> tuple[Round, ...]:
    """The rounds of `messages`: each message in exactly one of them. Linear time."""
    return tuple(Round(index, tuple(members)) for index, members in enumerate(grouped(messages)))


def grouped(messages: Iterable[Message]) -> list[list[Message]]:
    """The messages of each round, as plain lists."""
    grouper = _Grouper()
    for message in messages:
        grouper.add(message)
    return grouper.rounds


def has_rounds(messages: Iterable[Message], count: int) -> bool:
    """Whether `messages` have at least `count` rounds; reads no further than it must."""
    grouper = _Grouper()
    for message in messages:
        grouper.add(message)
        if len(grouper.rounds) >= count:
            return True
    return count <= 0


@dataclass(slots=True)
class _Grouper:
    """What is known while the messages go by, oldest first."""

    rounds: list[list[Message]] = field(default_factory=list)
    previous: Message | None = None  # the last message of the conversation
    answers: dict[str, tuple[int, int]] = field(default_factory=dict)  # api id → round, prompt tokens (0: not known)
    calls: dict[str, tuple[int, int]] = field(default_factory=dict)  # call id → round of its newest uses, how many open
    open_in: Counter[int] = field(default_factory=Counter)  # round → open calls

    def add(self, message: Message) -> None:
        speaking = message.in_conversation
        if not speaking:
            index = len(self.rounds) - 1
        elif message.role == "assistant":
            index = self._answered(message)
        else:
            index = self._said(message)
        if not self.rounds:
            self.rounds.append([])
        self.rounds[index].append(message)
        if speaking:
            self.previous = message

    def _answered(self, message: Message) -> int:
        """The round of an assistant message; its calls are open from now on."""
        prompt = message.usage.prompt_tokens if message.usage is not None else 0
        index = self._round_of(message, prompt)
        if message.api_message_id is not None:
            self.answers[message.api_message_id] = (index, prompt)
        for block in _blocks(message):
            if block["type"] == "tool_use":
                call = ident(block.get("id"))
                at, count = self.calls.get(call, (index, 0))
                self.calls[call] = (index, count + 1 if at == index else 1)
                self.open_in[index] += 1
        return index

    def _round_of(self, message: Message, prompt: int) -> int:
        previous, name = self.previous, message.api_message_id
        index, known = self.answers.get(name, (-1, 0)) if name is not None else (-1, 0)
        if index >= 0 and (not prompt or not known or prompt == known):
            return index
        if previous is not None and previous.role == "assistant":
            nameless = name is None and previous.api_message_id is None
            if nameless or self.open_in[len(self.rounds) - 1]:
                return len(self.rounds) - 1
        if previous is not None:
            self.rounds.append([])
        return max(len(self.rounds) - 1, 0)

    def _said(self, message: Message) -> int:
        """The round of a user message; the calls that it answers are closed."""
        last = max(len(self.rounds) - 1, 0)
        blocks = _blocks(message)
        results = [ident(block.get("tool_use_id")) for block in blocks if block["type"] == "tool_result"]
        if not results:
            if not message.is_meta:
                self.answers.clear()
            return last
        homes = {self._close(call) for call in dict.fromkeys(results)}
        home = homes.pop()
        return last if homes or home is None or len(results) < len(blocks) else home

    def _close(self, call: str) -> int | None:
        """The round of the newest use of this id, None when no such call is open."""
        index, count = self.calls.pop(call, (None, 0))
        if index is not None:
            self.open_in[index] -= count
        return index


def _blocks(message: Message) -> list[Block]:
    return [] if isinstance(message.content, str) else message.content
