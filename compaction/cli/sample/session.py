"""The sample session: the scenario carried out step by step, written as a Claude Code session log."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compaction.cli.sample.meter import EARLY_OUTPUT_TOKENS, Meter
from compaction.cli.sample.rows import Row, Rows
from compaction.cli.sample.scenario import Step, steps
from compaction.cli.sample.tools import Answer, answer
from compaction.cli.sample.tree import Tree, project
from compaction.core import jsonbytes

DEFAULT_SEED = 4
STARTED_AT = datetime(2026, 3, 11, 8, 2, 11, 140_000, tzinfo=UTC)  # any fixed moment: the same seed, the same bytes
TOKENS_PER_SECOND = 70.0  # how fast the model writes
CHARS_PER_SECOND = TOKENS_PER_SECOND * 2.74
FRAGMENT_SECONDS = 0.4


def sample_session(seed: int = DEFAULT_SEED, *, started_at: datetime = STARTED_AT) -> Iterator[bytes]:
    """The lines of the log, each with its newline: about 170,000 tokens by the usage of its last response.

    Pure: the same seed and start give the same bytes on every machine.
    """
    player = _Player(random.Random(seed), started_at)  # noqa: S311 - a sample, no secret
    for row in player.play():
        yield jsonbytes.encode(row) + b"\n"


def write_sample(path: Path, seed: int = DEFAULT_SEED, *, started_at: datetime = STARTED_AT) -> int:
    """Write the log to a file; the number of bytes."""
    with path.open("wb") as file:
        return sum(file.write(line) for line in sample_session(seed, started_at=started_at))


class _Player:
    """Walks through the scenario; keeps the project's files, the clock and the token meter."""

    def __init__(self, rng: random.Random, started_at: datetime) -> None:
        self._rng = rng
        self._tree: Tree = project(rng)
        self._rows = Rows(rng, started_at)
        self._meter = Meter()
        self._turn_began_seconds = 0.0

    def play(self) -> Iterator[Row]:
        """All rows in order."""
        hook = {
            "type": "hook_progress",
            "hookEvent": "SessionStart",
            "hookName": "SessionStart:startup",
            "command": "true",
        }
        yield self._rows.progress(hook, tool_use_id=self._rows.uuid(), chained=True)
        for step in steps():
            yield from self._asked(step) if step.user else self._answered(step)

    def _asked(self, step: Step) -> Iterator[Row]:
        if step.pause_minutes:
            duration_ms = int(1000 * (self._rows.elapsed_seconds - self._turn_began_seconds))
            yield self._rows.system("turn_duration", durationMs=duration_ms)
        self._rows.wait(step.pause_minutes * 60 + self._rng.uniform(4, 40))
        self._turn_began_seconds = self._rows.elapsed_seconds
        row = self._rows.user(step.user)
        self._meter.add(len(step.user))
        yield row
        yield self._rows.snapshot(row["uuid"])

    def _answered(self, step: Step) -> Iterator[Row]:
        answers = [answer(call, self._tree, self._rng) for call in step.calls]
        blocks = [*self._words(step), *(self._call(done) for done in answers)]
        output_chars = sum(len(jsonbytes.encode(block)) for block in blocks)
        self._rows.wait(self._rng.uniform(1.2, 3.5))
        now, fresh = self._rows.elapsed_seconds, self._rng.randint(1, 9)
        usage = self._meter.usage(now_seconds=now, output_chars=output_chars, fresh_tokens=fresh)
        self._rows.wait(output_chars / CHARS_PER_SECOND)
        self._meter.add(output_chars)
        message = {"id": self._rows.name("msg"), "request_id": self._rows.name("req")}
        sources: list[tuple[Row, str]] = []
        for number, block in enumerate(blocks, start=1):
            tokens = usage.output_tokens if number == len(blocks) else EARLY_OUTPUT_TOKENS
            row = self._rows.fragment(block, message, usage, tokens)
            yield row
            self._rows.wait(FRAGMENT_SECONDS)
            if block["type"] == "tool_use":
                sources.append((block, row["uuid"]))
        for done, (block, source) in zip(answers, sources, strict=True):
            yield from self._result(done, block["id"], source)

    def _words(self, step: Step) -> Iterator[Row]:
        if step.think:
            yield {"type": "thinking", "thinking": step.think, "signature": self._rows.signature()}
        if step.say:
            yield {"type": "text", "text": step.say}

    def _call(self, done: Answer) -> Row:
        return {"type": "tool_use", "id": self._rows.name("toolu"), "name": done.name, "input": done.input}

    def _result(self, done: Answer, call_id: str, source: str) -> Iterator[Row]:
        self._rows.wait(done.seconds)
        if done.name == "Bash":
            data = {"type": "bash_progress", "output": done.text[-400:], "elapsedTimeSeconds": int(done.seconds)}
            self._rows.last_uuid = source
            yield self._rows.progress(data, tool_use_id=call_id)
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": done.text}
        if done.is_error:
            block["is_error"] = True
        self._meter.add(len(done.text))
        yield self._rows.result(block, source_uuid=source, kept=done.kept)
