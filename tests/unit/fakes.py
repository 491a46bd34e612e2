"""Small hand-written stand-ins for the ports, shared by the tests of the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage
from compaction.core.results import Order, SessionFacts
from compaction.core.thresholds import thresholds
from compaction.errors import JobError
from compaction.ports import (
    HookContext,
    PaidSummary,
    PreCompactAnswer,
    Progress,
    SessionStartAnswer,
    SummaryReply,
    SummaryRequest,
)
from compaction.task import Task

SECTIONS = """1. Primary Request and Intent: move the invoices to the new service
2. Key Technical Concepts: retries, idempotency
3. Files and Code Sections: billing/retry.py, edited
4. Errors and Fixes: one import error, fixed
5. Problem Solving: the cause was one module
6. All User Messages: the request and one correction
7. Pending Tasks: the load test
8. Current Work: reading the log of the last run
9. Optional Next Step: run the load test"""


def summary_reply(text: str | None = None, *, stop_reason: str | None = "end_turn") -> SummaryReply:
    """A reply as a model gives it: analysis, then the nine sections in their tags."""
    whole = f"<analysis>going through it</analysis>\n<summary>\n{SECTIONS if text is None else text}\n</summary>"
    return SummaryReply(
        text=whole,
        stop_reason=stop_reason,
        usage=Usage(input_tokens=40_000, output_tokens=900),
        model="claude-haiku-4-5",
    )


@dataclass(slots=True)
class ScriptedSummarizer:
    """Answers with the next reply or raises the next error; keeps the requests."""

    script: list[SummaryReply | JobError] = field(default_factory=list)
    requests: list[SummaryRequest] = field(default_factory=list)
    name: str = "scripted"
    counted_tokens: int | JobError | None = None

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The next step of the script; the last one repeats."""
        self.requests.append(request)
        step = self.script.pop(0) if len(self.script) > 1 else (self.script or [summary_reply()])[0]
        if isinstance(step, Exception):
            raise step
        progress.characters(len(step.text))
        return step

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """The fixed count."""
        del request
        if isinstance(self.counted_tokens, Exception):
            raise self.counted_tokens
        return self.counted_tokens

    async def probe(self) -> None:
        """Works."""


@dataclass(slots=True)
class MemoryHistory:
    """A history that counts how often it was loaded."""

    messages: Sequence[Message]
    loads: int = 0
    held: bool = False

    async def load(self) -> Sequence[Message]:
        """The same messages each time."""
        self.loads += not self.held
        self.held = True
        return self.messages

    def release(self) -> None:
        """The next load counts again."""
        self.held = False


@dataclass(slots=True)
class MemoryRecorder:
    """Keeps everything; `calls_left` is the budget."""

    events: list[tuple[str, dict[str, Json]]] = field(default_factory=list)
    steps: list[tuple[str, int]] = field(default_factory=list)
    saved: list[PaidSummary] = field(default_factory=list)
    calls: int = 0

    def event(self, name: str, fields: dict[str, Json]) -> None:
        """Keeps it."""
        self.events.append((name, fields))

    def step(self, step: str, percent: int) -> None:
        """Keeps it."""
        self.steps.append((step, percent))

    async def before_call(self) -> None:
        """Counts it."""
        self.calls += 1

    async def save_summary(self, summary: PaidSummary) -> None:
        """Keeps it."""
        self.saved.append(summary)

    def names(self) -> list[str]:
        """The names of the events in order."""
        return [name for name, _ in self.events]


@dataclass(slots=True)
class ScriptedHooks:
    """Gives fixed answers."""

    before: PreCompactAnswer = field(default_factory=PreCompactAnswer)
    after: SessionStartAnswer = field(default_factory=SessionStartAnswer)
    asked: list[str] = field(default_factory=list)

    async def pre_compact(self, context: HookContext) -> PreCompactAnswer:
        """The fixed answer."""
        del context
        self.asked.append("pre_compact")
        return self.before

    async def session_start(self, context: HookContext) -> SessionStartAnswer:
        """The fixed answer."""
        del context
        self.asked.append("session_start")
        return self.after


def flat_price(model: str, usage: Usage) -> Decimal | None:
    """One dollar per million tokens, whatever the model; a tenth for what the cache holds."""
    del model
    read = usage.cache_read_input_tokens
    return (usage.total_tokens - read + Decimal(read) / 10) / 1_000_000


def talk(rounds: int, characters: int = 2_000) -> tuple[Message, ...]:
    """A conversation of so many rounds: a user's question and an answer of `characters` each."""
    messages: list[Message] = []
    for number in range(1, rounds + 1):
        question = f"question {number}: " + "why " * (characters // 4)
        messages.append(Message(role="user", content=question, seq=2 * number - 1))
        messages.append(
            Message(
                role="assistant",
                content=f"answer {number}: " + "so " * (characters // 3),
                seq=2 * number,
                api_message_id=f"msg_{number}",
            )
        )
    return tuple(messages)


def a_task(messages: Sequence[Message], order: Order, facts: SessionFacts, **changes: object) -> Task:
    """An attempt at the order on a model with a window of 200,000 tokens."""
    fields: dict[str, object] = {
        "facts": facts,
        "order": order,
        "covers_through_seq": len(messages),
        "now": datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
        "thresholds": thresholds(200_000, 64_000),
        "model": facts.model,
        "window_tokens": 200_000,
        "max_output_tokens": 64_000,
        "session_window_tokens": 200_000,
        "room_tokens": 180_000,
        "min_cacheable_tokens": 4_096,
        "limit_bytes": 32 * 2**20,
    }
    return Task(**(fields | changes))  # type: ignore[arg-type]  # a test's shorthand
