"""`make bench-api`: thousands who wait on one API process, and what an append costs, against what is promised.

Two shapes of waiting, each with 2,000 long-polls and 200 event streams: every caller with a job of his own, ending at a
steady pace as workers end them; and all callers on one job, answered by one commit. The extra delay lasts from the
commit's acknowledgement to the last byte of the caller's answer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.store.engine import Database
from ops.bench import appends, verdicts
from ops.bench.api_process import ApiProcess
from ops.bench.appends import Appending
from ops.bench.ending import AT_ONCE, Held, end_all, running_jobs
from ops.bench.verdicts import Verdict
from ops.bench.waiters import Answered, Crowd

POLLS, STREAMS = 2_000, 200
JOBS_PER_SECOND = 200.0  # twice what a worker does with no latency at all (facts/performance.md)
DELAY_BOUND_MS = 250.0
MEMORY_BOUND_MB = 300.0
APPEND_BOUND = 3.0
QUIET_CPU_SHARE = 0.05  # of a core: everybody has asked and waits
QUIET_SECONDS = 0.5
PERCENT = 99
ROUNDS = (
    3  # of a crowd on one job; the least disturbed counts: a fifth of a second is over before a busy machine notices
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """One shape of waiting: delays in milliseconds, memory of the API process in MB."""

    name: str
    unanswered: int
    polls_ms: list[float]
    streams_ms: list[float]
    peak_mb: float

    @property
    def delay_ms(self) -> float:
        """The 99th percentile over everybody."""
        return percentile(self.polls_ms + self.streams_ms, PERCENT)

    def line(self) -> str:
        """A row of the table."""
        kinds = (self.polls_ms, self.streams_ms)
        figures = [percentile(kind, percent) for kind in kinds for percent in (50, PERCENT)]
        return f"{self.name:24}" + "".join(f"{figure:>12.1f}" for figure in figures) + f"{self.peak_mb:>12.0f}"


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that `percent` of all do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, len(ranked) * percent // 100)]


async def waiting(api: ApiProcess) -> list[Waited]:
    """Both shapes, one after the other; of the second one, which is a single moment, the best of a few."""
    database = Database(api.database_url, pool_size=AT_ONCE)
    try:
        own = await waited(api, database, "a job each", await running_jobs(database, POLLS, "own"))
        rounds = [
            await waited(api, database, "one job for all", await running_jobs(database, 1, f"one-{number}"))
            for number in range(ROUNDS)
        ]
    finally:
        await database.close()
    best = min(rounds, key=lambda one: one.delay_ms)
    return [own, replace(best, unanswered=sum(one.unanswered for one in rounds))]


async def waited(api: ApiProcess, database: Database, name: str, held: Sequence[Held]) -> Waited:
    """Lets everybody ask, ends the jobs and collects the answers."""
    crowd = Crowd(api.port)
    for number in range(POLLS):
        crowd.poll(held[number % len(held)].job_id)
    for number in range(STREAMS):
        crowd.stream(held[number % len(held)].job_id)
    await crowd.asked()
    await quiet(api)
    ended = await end_all(database, held, JOBS_PER_SECOND)
    answers = await crowd.answered()
    return Waited(
        name=name,
        unanswered=sum(not answer.is_end for answer in answers),
        polls_ms=[delay_ms(answer, ended) for answer in answers[:POLLS]],
        streams_ms=[delay_ms(answer, ended) for answer in answers[POLLS:]],
        peak_mb=api.meter.peak_bytes() / 1e6,
    )


def delay_ms(answer: Answered, ended: dict[str, float]) -> float:
    """How long after the commit; an answer that overtook the commit's own acknowledgement came at once."""
    return max(0.0, 1000 * (answer.at - ended[answer.job_id]))


async def quiet(api: ApiProcess) -> None:
    """Waits until the API has nothing left to do."""
    while True:
        before, began = api.meter.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(QUIET_SECONDS)
        share = (api.meter.cpu_seconds() - before) / (time.perf_counter() - began)
        if share < QUIET_CPU_SHARE:
            return


def judged(shapes: Sequence[Waited], appending: Appending) -> list[Verdict]:
    """The promises."""
    return [
        *(verdicts.most(f"{shape.name}: unanswered", shape.unanswered, 0) for shape in shapes),
        *(
            verdicts.under(f"{shape.name}: p99 of the extra delay, ms", shape.delay_ms, DELAY_BOUND_MS)
            for shape in shapes
        ),
        verdicts.under("memory of the API, MB", max(shape.peak_mb for shape in shapes), MEMORY_BOUND_MB),
        verdicts.under("append of 100 messages, times the bare insert, p50", appending.ratio, APPEND_BOUND),
    ]


def main() -> int:
    """Measures and tells; 1 when a promise is not kept."""
    with ApiProcess() as api:
        appending = appends.measured(api)
    with ApiProcess() as api:
        shapes = asyncio.run(waiting(api))
    columns = ("polls p50", "polls p99", "streams p50", "streams p99", "peak MB")
    print(f"{POLLS} long-polls and {STREAMS} event streams on one API process; extra delay in ms")
    print(" " * 24 + "".join(f"{column:>12}" for column in columns))
    for shape in shapes:
        print(shape.line())
    print(f"append of 100 messages: {appending.http_ms:.1f} ms, bare insert {appending.bare_ms:.1f} ms\n")
    return verdicts.told(judged(shapes, appending))


if __name__ == "__main__":
    sys.exit(main())
