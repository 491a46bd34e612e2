"""The conversation as steps in order: the user or the assistant said something, or a tool was called and answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.core.messages import Block, Message
from compaction.core.speech import typed
from compaction.summarizers.extraction.calls import Call, call_from, is_call
from compaction.summarizers.extraction.commands import Run, is_viewing
from compaction.summarizers.extraction.outcomes import OPEN, Outcome, is_result, outcome_from, said_by_user
from compaction.summarizers.extraction.sizes import message_chars

Speaker = Literal["user", "assistant", "tool"]
INTERRUPTED = "[Request interrupted"  # what Claude Code writes when the user presses Escape
ANSWERED = "[answers to the agent's questions] "
_ANSWER_WRAPPING = re.compile(r"User has answered your questions: ?|You can now continue with .{0,40} in mind\.?")
MAX_ANSWER_CHARS = 4_000  # of the answer to a question that the agent asked through a tool


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `text` is empty for a call; `call` is None for words."""

    speaker: Speaker
    text: str = ""
    call: Call | None = None
    outcome: Outcome = OPEN


@dataclass(frozen=True, slots=True)
class Timeline:
    """All steps, and how large the conversation was that they come from."""

    steps: tuple[Step, ...]
    characters: int

    def calls(self) -> list[tuple[int, Call, Outcome]]:
        """The calls with their places in `steps`."""
        return [(place, step.call, step.outcome) for place, step in enumerate(self.steps) if step.call is not None]

    def runs(self) -> list[Run]:
        """The shell commands, oldest first."""
        return [Run(place, call.command, outcome) for place, call, outcome in self.calls() if call.command]

    def said(self, speaker: Speaker) -> list[tuple[int, str]]:
        """What the user or the assistant said, with the places in `steps`."""
        return [(place, step.text) for place, step in enumerate(self.steps) if step.speaker == speaker and step.text]

    def wishes(self) -> list[str]:
        """The user's words that ask for something: interruptions are left out."""
        return [text for _, text in self.said("user") if not text.startswith(INTERRUPTED)]

    def turn_start(self) -> int:
        """The place of the newest user words; 0 when there are none."""
        return max((place for place, _ in self.said("user")), default=0)


def timeline_of(messages: Sequence[Message], skipped: Message | None) -> Timeline:
    """The steps of the messages that the model sees, without `skipped` (an earlier summary)."""
    builder = _Builder()
    for message in messages:
        if not message.in_conversation or message is skipped:
            continue
        blocks = [block for block in message.blocks() if isinstance(block, dict)]
        builder.characters += message_chars(message)
        if message.role == "assistant":
            builder.assistant(blocks)
        else:
            builder.user(blocks, is_meta=message.is_meta or message.is_compact_summary)
    return builder.finish()


class _Builder:
    """Collects steps; a result goes to the latest open call of its id (some producers repeat ids)."""

    def __init__(self) -> None:
        self.characters = 0
        self._steps: list[Step] = []
        self._open: dict[str, int] = {}

    def assistant(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            text = block.get("text")
            if block.get("type") == "text" and isinstance(text, str) and text.strip():
                self._steps.append(Step("assistant", text=text.strip()))
            elif is_call(block):
                call_id = block.get("id")
                if isinstance(call_id, str):
                    self._open[call_id] = len(self._steps)
                self._steps.append(Step("tool", call=call_from(block)))
            elif is_result(block):  # the API's own tools answer inside the assistant's message
                self._result(block)

    def user(self, blocks: Sequence[Block], *, is_meta: bool) -> None:
        for block in blocks:
            if is_result(block):
                self._result(block)
        words = "" if is_meta else typed(blocks)
        if words:
            self._steps.append(Step("user", text=words))

    def _result(self, block: Block) -> None:
        call_id = block.get("tool_use_id")
        place = self._open.pop(call_id, None) if isinstance(call_id, str) else None
        if place is None:
            return
        call = self._steps[place].call
        if call is None:
            return
        outcome = outcome_from(block, is_command=bool(call.command) and not is_viewing(call.command))
        self._steps[place] = Step("tool", call=call, outcome=outcome)
        answer = said_by_user(outcome)
        if call.kind == "question" and outcome.verdict == "ok":
            answer = ANSWERED + _ANSWER_WRAPPING.sub("", outcome.text).strip()[:MAX_ANSWER_CHARS]
        if answer:
            self._steps.append(Step("user", text=answer))

    def finish(self) -> Timeline:
        return Timeline(tuple(self._steps), self.characters)
