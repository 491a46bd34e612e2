"""The comparison at the end: the producer's book and the fake provider's against what Postgres says.

Each promise becomes one row: what the books say, what the database says, and whether that is allowed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compaction.core.jobs import MAX_CRASHES
from tests.chaos.arena import Arena
from tests.chaos.faults.provider import DROPPED, OVERLOADED, REFUSED, STORM_SECONDS
from tests.chaos.producer import Producer, accepted

REFERENCE = re.compile(rb"Keep ((?:REF|POISON)-\d+)\.")
PROVIDER_FAULTS = {DROPPED, REFUSED, OVERLOADED}
PROVIDER_CODES = {"api_error", "overloaded", "rate_limited"}
MAX_STARVED = 0.05  # of the attempts: on a busy machine a lease of seconds ends now and then while Postgres restarts
MAX_SHOWN = 3  # examples of a broken promise

JOBS = """
    SELECT id::text, status, coalesce(substring(instructions from 'Keep (.*)[.]'), ''), session_id, attempt,
           max_attempts, crashes, covers_through_seq, coalesce(was_compacted, false), error->>'code', model_calls
    FROM jobs
"""
ATTEMPTS = """
    SELECT job_id::text, lease_token, outcome, owner, extract(epoch FROM started_at)::float8,
           extract(epoch FROM coalesce(ended_at, now()))::float8
    FROM attempts
"""
RESULTS = "SELECT job_id::text, lease_token, covers_through_seq, session_id FROM results"
EVENTS = "SELECT job_id::text, count(*) FROM job_events WHERE type = 'tengu_compact' GROUP BY job_id"
HISTORIES = """
    SELECT name, head_seq, count(messages.seq), coalesce(max(messages.seq), 0)
    FROM sessions LEFT JOIN messages ON messages.session_id = sessions.id GROUP BY sessions.id
"""
STALE_VIEWS = """
    SELECT sessions.name FROM sessions JOIN results live ON live.job_id = sessions.live_job_id
    WHERE EXISTS (SELECT FROM results newer
                  WHERE newer.session_id = sessions.id AND newer.covers_through_seq > live.covers_through_seq)
"""


@dataclass(frozen=True, slots=True)
class Job:
    """A job's row."""

    id: str
    status: str
    reference: str
    session_id: int
    attempt: int
    max_attempts: int
    crashes: int
    covers_through_seq: int | None
    was_compacted: bool
    error_code: str | None
    model_calls: int

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended."""
        return self.status in {"succeeded", "failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the ledger's table."""

    promise: str
    books: str
    database: str
    broken: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether the promise was kept."""
        return not self.broken


class Audit:
    """Reads everything once, then answers promise by promise."""

    def __init__(self, arena: Arena, producer: Producer) -> None:
        self.arena = arena
        self.accepted = accepted(producer.book)
        self.calls = list(arena.fake.calls)
        self.jobs = {row[0]: Job(*row) for row in arena.rows(JOBS)}
        self.attempts = arena.rows(ATTEMPTS)
        self.results = arena.rows(RESULTS)
        self.events = dict(arena.rows(EVENTS))

    def lines(self) -> list[Line]:
        """Every promise."""
        return [
            self._ended(),
            self._nothing_else(),
            self._one_result(),
            self._current_lease(),
            self._nothing_twice(),
            self._newest_input(),
            self._histories(),
            self._calls_in_all(),
            self._calls_of_each(),
            self._saved_summaries(),
            self._poison(),
            self._innocent(),
            self._bounds(),
            self._drained(),
            self._moments(),
        ]

    def outcomes(self) -> Counter[str]:
        """How the jobs ended."""
        return Counter(job.status if job.error_code is None else job.error_code for job in self.jobs.values())

    def _ended(self) -> Line:
        ids = {line["job"] for line in self.accepted}
        open_jobs = [key for key in ids if key not in self.jobs or not self.jobs[key].is_terminal]
        ended = sum(job.is_terminal for job in self.jobs.values())
        return Line("every accepted job ends", f"{len(ids)} accepted", f"{ended} terminal", _some(open_jobs))

    def _nothing_else(self) -> Line:
        ids = {line["job"] for line in self.accepted}
        strangers = [key for key in self.jobs if key not in ids]
        return Line(
            "no job that nobody was told of", f"{len(ids)} accepted", f"{len(self.jobs)} jobs", _some(strangers)
        )

    def _one_result(self) -> Line:
        held = Counter(row[0] for row in self.results)
        wanted = {job.id for job in self.jobs.values() if job.status == "succeeded" and job.was_compacted}
        wrong = [key for key in wanted | set(held) if held[key] != (key in wanted)]
        return Line(
            "one result each, at most", f"{len(wanted)} compacted", f"{len(self.results)} results", _some(wrong)
        )

    def _current_lease(self) -> Line:
        winners = {(row[0], row[1]) for row in self.attempts if row[2] == "succeeded"}
        wrong = [row[0] for row in self.results if (row[0], row[1]) not in winners]
        double = [key for key, count in Counter(key for key, _ in winners).items() if count > 1]
        told = f"{len(winners)} attempts won"
        return Line("no result from a lost lease", told, f"{len(self.results)} results", _some(wrong + double))

    def _nothing_twice(self) -> Line:
        wanted = {row[0] for row in self.results}
        wrong = [key for key in wanted | set(self.events) if self.events.get(key, 0) != (key in wanted)]
        told = sum(self.events.values())
        return Line("one compaction event a result", f"{len(wanted)} results", f"{told} events", _some(wrong))

    def _newest_input(self) -> Line:
        """What was appended before an enqueue is covered by the job that the enqueue returned."""
        forgotten = []
        for line in self.accepted:
            job = self.jobs.get(line["job"])
            if job is not None and job.covers_through_seq is not None and job.covers_through_seq < line["head_seq"]:
                forgotten.append(line["reference"])
        stale = [row[0] for row in self.arena.rows(STALE_VIEWS)]
        told = f"{len(self.accepted)} requests"
        return Line("newer input is never forgotten", told, f"{len(stale)} stale views", _some(forgotten + stale))

    def _histories(self) -> Line:
        heads: dict[str, int] = {}
        for line in self.accepted:
            heads[line["session"]] = max(heads.get(line["session"], 0), line["head_seq"])
        rows = self.arena.rows(HISTORIES)
        wrong = [name for name, head, count, last in rows if not heads.get(name, 0) <= head == count == last]
        return Line(
            "no message is lost or doubled",
            f"{sum(heads.values())} sent",
            f"{sum(r[2] for r in rows)} stored",
            _some(wrong),
        )

    def _calls_in_all(self) -> Line:
        ran = {row[0] for row in self.attempts}
        in_flight = sum(fault.in_flight for fault in self.arena.record.disruptions)
        retries = sum(row[2] in {"retrying", "released", "snoozed"} for row in self.attempts)
        starved = self._starved()
        told = f"{len(ran)} jobs + {in_flight} in flight + {retries} retries + {starved} starved"
        broken = []
        if len(self.calls) > (allowed := len(ran) + in_flight + retries + starved):
            broken.append(f"{len(self.calls) - allowed} too many")
        if starved > MAX_STARVED * len(self.attempts):
            broken.append(f"{starved} leases ended that nobody struck")
        return Line("provider calls are all accounted for", f"{len(self.calls)} calls", told, tuple(broken))

    def _starved(self) -> int:
        """Attempts that made a call and lost their lease although nobody struck their worker."""
        struck, references = self._struck(), {job.id: job.reference for job in self.jobs.values()}
        called: dict[str, list[float]] = {}
        for reference, call in zip(self._references(), self.calls, strict=True):
            called.setdefault(reference, []).append(call.at)
        return sum(
            outcome in {"expired", "fenced"}
            and _pid(owner) not in struck
            and any(begin <= at <= end for at in called.get(references[job_id], ()))
            for job_id, _, outcome, owner, begin, end in self.attempts
        )

    def _calls_of_each(self) -> Line:
        made = Counter(self._references())
        started = self._attempts_of_each()
        wrong = [
            f"{key}: {count} calls, {started[key]} attempts" for key, count in made.items() if count > started[key]
        ]
        return Line(
            "no attempt calls twice", f"{sum(made.values())} calls", f"{sum(started.values())} attempts", _some(wrong)
        )

    def _saved_summaries(self) -> Line:
        """A kill after the summary was saved costs no second call."""
        paid = self.arena.record.paid
        saved = {self.jobs[key].reference: at for key, at in paid.items() if key in self.jobs}
        later = [
            ref for ref, call in zip(self._references(), self.calls, strict=True) if call.at > saved.get(ref, call.at)
        ]
        told = f"{len(later)} calls afterwards"
        return Line("a saved summary is not paid again", f"{len(paid)} kills after saving", told, _some(later))

    def _poison(self) -> Line:
        found = [job for job in self.jobs.values() if job.reference in self.arena.record.poison]
        wrong = [job.id for job in found if (job.error_code, job.crashes) != ("worker_lost", MAX_CRASHES)]
        missing = len(self.arena.record.poison) - len(found)
        told = f"{len(found)} worker_lost after {MAX_CRASHES} crashes"
        broken = (*_some(wrong), *((f"{missing} missing",) if missing else ()))
        return Line(f"poison ends after {MAX_CRASHES} crashes", f"{len(self.arena.record.poison)} poison", told, broken)

    def _innocent(self) -> Line:
        """Everybody else succeeds; its owner may cancel a job.

        What we struck again and again may fail: a job with three lost workers, or with five attempts of which each one
        that the provider failed had a fault of the provider's in its time.
        """
        struck = self._struck()
        lost, failed, wrong = 0, 0, []
        for job in self.jobs.values():
            if job.status == "succeeded" or job.reference in self.arena.record.poison:
                continue
            if job.status == "cancelled" and job.id in self.arena.record.cancelled:
                continue
            if job.error_code == "worker_lost" and self._losses(job.id, struck) == ["struck"] * MAX_CRASHES:
                lost += 1
            elif job.error_code in PROVIDER_CODES and job.attempt == job.max_attempts and self._was_failed(job.id):
                failed += 1
            else:
                wrong.append(f"{job.id} {job.status} {job.error_code}: {', '.join(self._losses(job.id, struck))}")
        succeeded = sum(job.status == "succeeded" for job in self.jobs.values())
        told = f"{succeeded} succeeded, {lost} lost 3 workers, {failed} failed 5 times"
        return Line("nobody else is hurt", f"{len(self.arena.record.cancelled)} cancels", told, _some(wrong))

    def _struck(self) -> set[int]:
        """The processes that we killed, froze or cut off."""
        return set().union(*(worker.struck for worker in self.arena.workers))

    def _losses(self, job_id: str, struck: set[int]) -> list[str]:
        """How each lease of a job was lost that counts as a crash: by our hand, or not."""
        owners = [_pid(row[3]) for row in self.attempts if row[0] == job_id and row[2] == "expired"]
        return ["struck" if pid in struck else f"worker {pid} was not struck" for pid in owners]

    def _was_failed(self, job_id: str) -> bool:
        """Whether the provider was in trouble by our hand in each attempt that failed with its error."""
        trouble = [fault.at for fault in self.arena.record.disruptions if fault.kind in PROVIDER_FAULTS]
        spans = [row[4:6] for row in self.attempts if row[0] == job_id and row[2] in {"retrying", "failed"}]
        return all(any(begin - STORM_SECONDS <= at <= end for at in trouble) for begin, end in spans)

    def _bounds(self) -> Line:
        wrong = [job.id for job in self.jobs.values() if job.attempt > job.max_attempts or job.crashes > MAX_CRASHES]
        open_attempts = [row[0] for row in self.attempts if row[2] is None]
        most = max((job.attempt for job in self.jobs.values()), default=0)
        return Line("attempts are bounded and closed", "at most 5", f"at most {most}", _some(wrong + open_attempts))

    def _drained(self) -> Line:
        codes = [code for worker in self.arena.workers for code in worker.returncodes]
        return Line(
            "a drained worker exits 0",
            f"{len(codes)} told to go",
            f"{codes.count(0)} exits with 0",
            _some(c for c in codes if c),
        )

    def _moments(self) -> Line:
        problems = self.arena.record.problems
        return Line("promises of the moment", "none broken", f"{len(problems)} broken", _some(problems))

    def _references(self) -> Iterator[str]:
        for call in self.calls:
            found = REFERENCE.findall(call.body or b"")
            yield found[-1].decode() if found else ""

    def _attempts_of_each(self) -> Counter[str]:
        references = {job.id: job.reference for job in self.jobs.values()}
        return Counter(references[row[0]] for row in self.attempts)


def table(lines: Iterable[Line]) -> str:
    """The ledger for a person."""
    rows = [(line.promise, line.books, line.database, "kept" if line.is_kept else "BROKEN") for line in lines]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    text = ["  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])) for row in rows]
    return "\n".join(text + [f"  {line.promise}: {problem}" for line in lines for problem in line.broken])


def _pid(owner: str) -> int:
    """The process in an owner's name: host:pid:start."""
    return int(owner.split(":")[-2])


def _some(found: Iterable[object]) -> tuple[str, ...]:
    listed = [str(one) for one in found]
    more = [f"and {len(listed) - MAX_SHOWN} more"] if len(listed) > MAX_SHOWN else []
    return tuple(listed[:MAX_SHOWN] + more)
