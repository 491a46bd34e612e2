"""`make bench-core`: what the thinking about a session costs, against json.loads of the same bytes.

The session is the product's sample session (`compaction.cli.sample`), played with one seed after the other until it is
large enough: the block kinds, sizes and scripts of a coding agent, the same bytes on every machine. Everything is timed
in turn within each repetition, and medians are compared, so that a slow moment of the machine hits all alike.

"The same bytes" can be read in two ways, and both are measured: the stored form, one JSON body per message, decoded one
by one; and all bodies in one array, decoded at once. The verdict takes whichever is the faster.
"""

from __future__ import annotations

import gc
import io
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from compaction import formats
from compaction.cli.sample import sample_session
from compaction.core import grouping, microcompact, policy, tokens, wire
from compaction.core.messages import Message, decode_message
from compaction.core.rendering import render_transcript
from compaction.core.thresholds import thresholds
from compaction.core.tool_table import tool_table

MEGABYTE = 1_000_000
SIZES_MEGABYTES = (1, 10, 30, 100)
JUDGED_MEGABYTES = 10
LIMIT = 3.0  # times json.loads, all steps together
GROWTH_LIMIT = 2.0  # time per MB at the largest size over that at 10 MB: quadratic is 10, caches and page faults 1.5
REPETITIONS = {1: 15, 10: 15, 30: 5, 100: 3}  # by size: enough for a median, short enough to wait for
COLLECTOR_THRESHOLDS = (50_000, 10, 10)  # as workers run (worker/bootstrap.py)
LATER = datetime(2030, 1, 1, tzinfo=UTC)  # long after the sample's last answer: its cache is cold
WINDOW_TOKENS, OUTPUT_TOKENS = 200_000, 64_000

Step = Callable[[Sequence[Message]], object]


def guards(messages: Sequence[Message]) -> object:
    """What an automatic job asks before anything else, in the order of `compaction.auto`."""
    threshold = thresholds(WINDOW_TOKENS, OUTPUT_TOKENS).auto_compact
    told = policy.Guards(trigger="auto", tokens=threshold, threshold=threshold)
    return policy.skip_reason(told), policy.nothing_to_compact(messages)


def clear_old_results(messages: Sequence[Message]) -> object:
    """The time-based micro-compaction; on this session it always finds something."""
    cleared = microcompact.time_based(messages, now=LATER, table=tool_table())
    if cleared is None:
        raise AssertionError("nothing was cleared, so the measurement would tell nothing")
    return cleared


STEPS: dict[str, Step] = {
    "guards": guards,
    "estimate": tokens.session_tokens,
    "rounds": grouping.rounds,
    "repair": lambda messages: wire.api_messages(messages, close_open=True),
    "micro-compaction": clear_old_results,
    "rendering": render_transcript,
}


@dataclass(frozen=True, slots=True)
class Figures:
    """Median seconds for one session: of each step, and of json.loads in both readings."""

    size_bytes: int
    messages: int
    steps: dict[str, float]
    array_seconds: float
    bodies_seconds: float

    @property
    def loads_seconds(self) -> float:
        """The faster of the two: the stricter measure."""
        return min(self.array_seconds, self.bodies_seconds)

    @property
    def total_seconds(self) -> float:
        """All steps together."""
        return sum(self.steps.values())

    @property
    def ratio(self) -> float:
        """All steps over json.loads, by the stricter measure."""
        return self.total_seconds / self.loads_seconds

    @property
    def seconds_per_megabyte(self) -> float:
        """All steps, by size."""
        return self.total_seconds * MEGABYTE / self.size_bytes


def session(size_bytes: int) -> list[bytes]:
    """The bodies of a session of at least so many bytes."""
    bodies: list[bytes] = []
    size = 0
    for seed in itertools.count():
        for body in formats.read(io.BytesIO(b"".join(sample_session(seed)))).bodies():
            if size >= size_bytes:
                return bodies
            bodies.append(body)
            size += len(body)
    raise AssertionError("there is always one more seed")


def measured(bodies: Sequence[bytes], repetitions: int) -> Figures:
    """Each step and both readings of json.loads, in turn, on messages that were decoded anew (memos are empty)."""
    array = b"[" + b",".join(bodies) + b"]"
    seconds: dict[str, list[float]] = {name: [] for name in (*STEPS, "array", "bodies")}
    for _ in range(repetitions):
        seconds["array"].append(_timed(partial(json.loads, array)))
        seconds["bodies"].append(_timed(partial(_load_each, bodies)))
        messages = tuple(decode_message(body, seq=seq) for seq, body in enumerate(bodies, 1))
        for name, step in STEPS.items():
            seconds[name].append(_timed(partial(step, messages)))
        del messages
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return Figures(
        size_bytes=sum(map(len, bodies)),
        messages=len(bodies),
        steps={name: medians[name] for name in STEPS},
        array_seconds=medians["array"],
        bodies_seconds=medians["bodies"],
    )


def _load_each(bodies: Sequence[bytes]) -> list[object]:
    return [json.loads(body) for body in bodies]


def _timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def table(figures: Figures) -> str:
    """Milliseconds of each step and its share of json.loads."""
    rows = [*figures.steps.items(), ("together", figures.total_seconds)]
    array, bodies = figures.array_seconds, figures.bodies_seconds
    lines = [
        f"{figures.size_bytes / MEGABYTE:.0f} MB, {figures.messages:,} messages",
        f"json.loads takes {bodies * 1e3:.1f} ms body by body, {array * 1e3:.1f} ms as one array",
        f"{'step':<18}{'ms':>8}{'x bodies':>10}{'x array':>10}",
    ]
    for name, spent in rows:
        lines.append(f"{name:<18}{spent * 1e3:>8.1f}{spent / bodies:>10.2f}{spent / array:>10.2f}")
    return "\n".join(lines)


def problems(figures: Sequence[Figures]) -> list[str]:
    """What is not met; nothing when all is well."""
    judged = next(one for one in figures if round(one.size_bytes / MEGABYTE) == JUDGED_MEGABYTES)
    largest = max(figures, key=lambda one: one.size_bytes)
    growth = largest.seconds_per_megabyte / judged.seconds_per_megabyte
    found = []
    if judged.ratio >= LIMIT:
        found.append(f"all steps together take {judged.ratio:.2f} times json.loads, not less than {LIMIT:g}")
    if growth > GROWTH_LIMIT:
        found.append(f"a megabyte of the largest session costs {growth:.2f} times as much: not linear")
    return found


def main() -> int:
    """Measures, prints, and gives the exit code: 0 when the cost is below its limit and grows linearly."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    figures = []
    for size in SIZES_MEGABYTES:
        one = measured(session(size * MEGABYTE), REPETITIONS[size])
        figures.append(one)
        if size == JUDGED_MEGABYTES:
            print(f"{table(one)}\n")
    for one in figures:
        size_megabytes = one.size_bytes / MEGABYTE
        print(
            f"{size_megabytes:>4.0f} MB: {one.seconds_per_megabyte * 1e3:6.2f} ms per MB, {one.ratio:.2f} x json.loads"
        )
    found = problems(figures)
    print("\n".join(f"NOT MET: {problem}" for problem in found) or f"met: less than {LIMIT:g} x json.loads, and linear")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
