"""An agent's loop without a model: it says things, calls tools, and keeps its history as real loops do."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

from compaction.client import AgentHistory
from tests.unit.core.rules import broken_rules

Turn = dict[str, Any]
SMALL_WINDOW = {"context_window": 40_000, "max_output_tokens": 4_000}  # automatic at 23,000, full at 33,000


class Agent:
    """Goes on from any list.

    `said` holds the marks of everything that was ever said, in order; `given` the lists that a model would have got.
    """

    def __init__(self, history: AgentHistory, seed: int = 0) -> None:
        self.history = history
        self.messages: list[Any] = []
        self.said: list[str] = []
        self.given: list[list[Turn]] = []
        self._dice = random.Random(seed)
        self._numbers = count(1)

    async def step(self, characters: int = 1_500) -> None:
        """One round: the history is kept, a model would be called with it, and answers."""
        if not self.messages or self.messages[-1]["role"] == "assistant":
            self.messages.append({"role": "user", "content": self._words(200)})
        await self.sent()
        text = {"type": "text", "text": self._words(characters // 4)}
        if self._dice.random() < 0.2:
            self.messages.append({"role": "assistant", "content": [text]})
            return
        calls = [self._call() for _ in range(self._dice.randint(1, 3))]
        self.messages.append({"role": "assistant", "content": [text, *calls]})
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": self._words(characters)} for call in calls
        ]
        self.messages.append({"role": "user", "content": results})

    async def sent(self) -> list[Turn]:
        """The list that a model gets now; it must obey the API's rules."""
        self.messages = await self.history.keep(self.messages)
        self.given.append(list(self.messages))
        asked = [] if self.messages[-1]["role"] == "user" else [{"role": "user", "content": "Go on."}]
        assert broken_rules([*self.messages, *asked]) == []
        return self.messages

    def _call(self) -> Turn:
        return {"type": "tool_use", "id": f"toolu_{next(self._numbers)}", "name": "Read", "input": {"path": "a.py"}}

    def _words(self, characters: int) -> str:
        mark = f"MARK-{next(self._numbers)}-"
        self.said.append(mark)
        return mark + " some more words" * (characters // 16)
