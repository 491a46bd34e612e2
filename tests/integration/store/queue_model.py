"""The queue as a handful of fields: what the store should do, in words simple enough to be believed.

Time does not pass in the model: a lease ends and a pause is over when somebody says so, here and in the database.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compaction.core.jobs import MAX_ATTEMPTS, MAX_CRASHES, TERMINAL, Status


@dataclass(slots=True)
class ModelJob:
    """A job. `token` is that of its current claim, `old_tokens` of the claims before."""

    id: str
    session: int
    status: Status = "queued"
    is_due: bool = True
    is_overdue: bool = False
    attempt: int = 0
    crashes: int = 0
    covers: int | None = None
    token: int | None = None
    owner: str = ""
    is_expired: bool = False
    wants_cancel: bool = False
    winner: int | None = None  # the token that wrote the result
    old_tokens: list[int] = field(default_factory=list)
    reaped: dict[int, str] = field(default_factory=dict)  # owners by token: losses that were taken for crashes

    @property
    def is_active(self) -> bool:
        """Started and not ended."""
        return self.status in {"running", "retrying"}

    @property
    def is_waiting(self) -> bool:
        """Not running and not ended."""
        return self.status in {"queued", "retrying"}

    @property
    def is_terminal(self) -> bool:
        """Ended."""
        return self.status in TERMINAL

    @property
    def row(self) -> tuple[object, ...]:
        """What the database should hold: job, result's token, tokens of open attempts."""
        opened = [] if self.token is None else [self.token]
        job = (self.status, self.attempt, self.crashes, self.covers, self.token, self.is_terminal)
        return (*job, self.winner, opened)

    def take(self, token: int, owner: str, head: int) -> None:
        """A claim."""
        self.status, self.token, self.owner, self.is_expired = "running", token, owner, False
        self.attempt += 1
        self.covers = head if self.covers is None else self.covers

    def leave(self, status: Status, *, is_due: bool = False) -> None:
        """The claim ends."""
        if self.token is not None:
            self.old_tokens.append(self.token)
        self.status, self.token, self.is_due, self.is_expired = status, None, is_due, False

    def retry(self, *, is_due: bool, counted: bool) -> None:
        """The worker gives it back."""
        self.attempt -= not counted
        self.leave("cancelled" if self.wants_cancel else "retrying", is_due=is_due)

    def lose(self) -> None:
        """The reaper takes it away."""
        self.crashes += 1
        if self.token is not None:
            self.reaped[self.token] = self.owner
        is_over = self.crashes >= MAX_CRASHES or self.attempt >= MAX_ATTEMPTS or self.is_overdue
        self.leave("cancelled" if self.wants_cancel else "failed" if is_over else "retrying")

    def survive(self, owner: str) -> None:
        """The worker that lost it is there all the same, and says so."""
        if self.is_active:
            mine = [token for token, lost_by in self.reaped.items() if lost_by == owner]
            for token in mine:
                del self.reaped[token]
                self.crashes -= 1

    def hand_back(self) -> None:
        """The worker gave it up and lets others have it before its lease ends; the attempt counts."""
        self.leave("retrying", is_due=True)


@dataclass(slots=True)
class ModelSession:
    """A session: how many messages it has, and which job's result its live view begins with."""

    number: int
    head: int = 0
    live_job: str | None = None


@dataclass(slots=True)
class ModelQueue:
    """All of it."""

    sessions: list[ModelSession] = field(default_factory=list)
    jobs: dict[str, ModelJob] = field(default_factory=dict)
    promises: list[tuple[str, int]] = field(default_factory=list)  # the job of an enqueue, the head at that time

    def waiting(self, session: int) -> ModelJob | None:
        """The session's queued job."""
        found = [job for job in self.jobs.values() if job.session == session and job.status == "queued"]
        assert len(found) <= 1
        return found[0] if found else None

    def active(self, session: int) -> ModelJob | None:
        """The session's running or retrying job."""
        found = [job for job in self.jobs.values() if job.session == session and job.is_active]
        assert len(found) <= 1
        return found[0] if found else None

    def may_claim(self, job: ModelJob, owner: str) -> bool:
        """Whether a claim of this job by this worker succeeds."""
        other = self.active(job.session)
        free = other is None or other is job
        return job.is_waiting and job.is_due and free and not job.is_overdue and self._may_join(job, owner)

    def _may_join(self, job: ModelJob, owner: str) -> bool:
        """Two sessions make too few jobs for the other limit: a last chance is alone."""
        beside = [one.crashes for one in self.jobs.values() if one.token is not None and one.owner == owner]
        suspects = [crashes for crashes in beside if crashes]
        return not job.crashes or not suspects or max(*suspects, job.crashes) < MAX_CRASHES - 1


def running(job: ModelJob) -> bool:
    """A worker has it."""
    return job.status == "running"


def waiting(job: ModelJob) -> bool:
    """It waits, for the first time or again."""
    return job.is_waiting


def live(job: ModelJob) -> bool:
    """It has not ended."""
    return not job.is_terminal


def lost(job: ModelJob) -> bool:
    """Its lease or its time is over, and nobody has done anything about it yet."""
    return live(job) and (job.is_expired or job.is_overdue)


def left(job: ModelJob) -> bool:
    """Somebody had it once and has it no more."""
    return bool(job.old_tokens)


def reaped(job: ModelJob) -> bool:
    """It lost a worker, or so it seems."""
    return bool(job.reaped)


def held_again(job: ModelJob) -> bool:
    """Somebody had it once and another one has it now."""
    return left(job) and running(job)
