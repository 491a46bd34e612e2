"""Any sequence of what producers, workers, the reconciler and the network can do leaves the queue as the model says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from compaction.core.jobs import MAX_ATTEMPTS, MAX_CRASHES, MAX_MODEL_CALLS, Trigger
from compaction.errors import LeaseLost
from compaction.store import jobs
from compaction.store.engine import Database
from compaction.store.jobs import Claim, Finish
from tests.integration.store.queue_model import ModelJob, ModelQueue, ModelSession
from tests.integration.store.stage import Stage, message, staged, success

T = TypeVar("T")

SESSIONS = 2
EXAMPLES = int(os.environ.get("COMPACTD_MODEL_EXAMPLES", "40"))  # sequences; `make chaos` asks for more
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)  # a database is no pure function
STEPS = 40  # events in a sequence
OWNERS = ("worker-1", "worker-2")
MAX_ROUNDS = 20  # until every job has ended: each needs two claims at most once nothing goes wrong any more
ROWS = """
    SELECT id::text, status, attempt, crashes, covers_through_seq, lease_token, ended_at IS NOT NULL,
           cancel_requested_at IS NOT NULL
    FROM jobs WHERE tenant_id = %s
"""
RESULTS = "SELECT job_id::text, results.lease_token FROM results JOIN jobs ON jobs.id = job_id WHERE tenant_id = %s"
OPEN_ATTEMPTS = """
    SELECT job_id::text, attempts.lease_token FROM attempts JOIN jobs ON jobs.id = job_id
    WHERE tenant_id = %s AND attempts.ended_at IS NULL
"""
END_LEASE = "UPDATE jobs SET lease_expires_at = now() - interval '1 second' WHERE id = %s"
END_PAUSE = "UPDATE jobs SET not_before = now() - interval '1 second' WHERE id = %s"
END_TIME = "UPDATE jobs SET deadline_at = now() - interval '1 second' WHERE id = %s"


class QueueMachine(RuleBasedStateMachine):
    """The store beside its model. Every rule does the same to both and compares the answers."""

    known = Bundle("known")  # ids of jobs, ended ones too

    def __init__(self, loop: asyncio.AbstractEventLoop, database: Database) -> None:
        super().__init__()
        self._loop = loop
        self._database = database
        self.model = ModelQueue()
        self.claims: dict[str, Claim] = {}
        self.newest_token = 0

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine."""
        return self._loop.run_until_complete(work)

    @initialize()
    def open_sessions(self) -> None:
        """A tenant of its own with a few sessions."""
        self.stage: Stage = self.wait(staged(self._database))
        self.rows = [self.wait(self.stage.session()) for _ in range(SESSIONS)]
        self.model.sessions = [ModelSession(number) for number in range(SESSIONS)]

    @rule(number=st.integers(0, SESSIONS - 1))
    def append(self, number: int) -> None:
        """The producer says something."""
        session = self.model.sessions[number]
        session.head += 1
        assert self.wait(self.stage.append(self.rows[number], message(f"m{session.head}"))).head_seq == session.head

    @rule(
        target=known,
        number=st.integers(0, SESSIONS - 1),
        trigger=st.sampled_from(["auto", "manual", "reactive", "bulk"]),
        later=st.booleans(),
    )
    def enqueue(self, number: int, trigger: Trigger, later: bool) -> str:
        """A new job, or the one that waits; the promise is that it covers everything said so far."""
        not_before = datetime.now(UTC) + timedelta(hours=1) if later else None
        put = self.wait(self.stage.enqueue(self.rows[number], trigger, not_before=not_before))
        waiting = self.model.waiting(number)
        assert put.created == (waiting is None)
        job = waiting or ModelJob(put.job.id, number, is_due=False)
        assert put.job.id == job.id
        job.is_due = job.is_due or not later
        job.is_overdue = False
        self.model.jobs[job.id] = job
        retrying = self.model.active(number)
        if retrying is not None and retrying.status == "retrying" and trigger in {"manual", "reactive"}:
            retrying.is_due = True
        self.model.promises.append((job.id, self.model.sessions[number].head))
        return job.id

    @rule(job_id=known, owner=st.sampled_from(OWNERS))
    def deliver(self, job_id: str, owner: str) -> None:
        """A message reaches a worker: the first one, a second one, one for a job that has long ended."""
        self._claim(self.model.jobs[job_id], owner)

    def _claim(self, job: ModelJob, owner: str) -> None:
        may = self.model.may_claim(job)
        claim = self.wait(self.stage.try_claim(job.id, owner))
        assert (claim is not None) == may
        if claim is None:
            return
        assert claim.token > self.newest_token
        self.newest_token = claim.token
        job.take(claim.token, owner, self.model.sessions[job.session].head)
        self.claims[job.id] = claim
        assert (claim.covers_through_seq, claim.job.attempt) == (job.covers, job.attempt)

    @rule(owner=st.sampled_from(OWNERS))
    def beat(self, owner: str) -> None:
        """Only current leases of this owner are renewed, and it hears of those that somebody wants cancelled."""
        everything = [job for job in self.model.jobs.values() if job.token is not None]
        held = [job for job in everything if job.owner == owner]
        tokens = [job.token or 0 for job in everything]
        tokens += [token for job in self.model.jobs.values() for token in job.old_tokens]
        heard = self.wait(self._beat(owner, tokens))
        assert heard.alive == {job.token for job in held}
        assert heard.cancel_requested == {job.id for job in held if job.wants_cancel}
        for job in held:
            job.is_expired = False

    async def _beat(self, owner: str, tokens: list[int]) -> jobs.Beat:
        async with self._database.begin() as conn:
            return await jobs.beat(conn, owner, 60, tokens)

    @rule(job_id=known)
    def expire(self, job_id: str) -> None:
        """The worker is silent for longer than its lease."""
        job = self.model.jobs[job_id]
        if job.status == "running":
            self.wait(self.stage.change(END_LEASE, job_id))
            job.is_expired = True

    @rule(job_id=known)
    def let_a_pause_pass(self, job_id: str) -> None:
        """A job may start now."""
        job = self.model.jobs[job_id]
        if job.is_waiting:
            self.wait(self.stage.change(END_PAUSE, job_id))
            job.is_due = True

    @rule(job_id=known)
    def let_the_deadline_pass(self, job_id: str) -> None:
        """A job has waited for a day."""
        job = self.model.jobs[job_id]
        if not job.is_terminal:
            self.wait(self.stage.change(END_TIME, job_id))
            job.is_overdue = True

    @rule()
    def reap(self) -> None:
        """Exactly the expired and the overdue ones are taken away, once."""
        taken = {job.id: job.token for job in self.model.jobs.values() if job.status == "running" and job.is_expired}
        overdue = {job.id: None for job in self.model.jobs.values() if job.is_waiting and job.is_overdue}
        for job_id in taken:
            self.model.jobs[job_id].lose()
        for job_id in overdue:
            self.model.jobs[job_id].leave("failed")
        reaped = self.wait(self._reap())
        assert sorted((one.job_id, one.token or 0) for one in reaped) == sorted(
            (key, token or 0) for key, token in [*taken.items(), *overdue.items()]
        )

    async def _reap(self) -> list[jobs.Reaped]:
        async with self._database.begin() as conn:
            return await jobs.reap_expired(conn, 100)

    @rule(job_id=known, how=st.sampled_from(["succeeded", "skipped", "failed", "retry", "release", "cancelled"]))
    def commit(self, job_id: str, how: str) -> None:
        """The holder ends its attempt, in time or late but before the reaper."""
        job = self.model.jobs[job_id]
        if job.status != "running":
            return
        assert self._finish(self.claims[job_id], how)
        token = job.token
        if how in {"retry", "release"}:
            job.retry(is_due=how == "release", counted=how == "retry")
            return
        job.leave({"skipped": "succeeded"}.get(how, how))  # type: ignore[arg-type]  # the other words are states
        if how == "succeeded":
            job.winner = token
            self.model.sessions[job.session].live_job = job_id

    @rule(job_id=known, how=st.sampled_from(["succeeded", "failed", "retry", "release"]), data=st.data())
    def commit_late(self, job_id: str, how: str, data: st.DataObject) -> None:
        """A worker that lost its lease, or whose answer was lost, commits: nothing happens."""
        job = self.model.jobs[job_id]
        if not job.old_tokens:
            return
        stale = replace(self.claims[job_id], token=data.draw(st.sampled_from(job.old_tokens)))
        assert not self._finish(stale, how)
        assert not self.wait(self._save(stale))
        with pytest.raises(LeaseLost):
            self.wait(self._count_call(stale))

    @rule(job_id=known)
    def pay(self, job_id: str) -> None:
        """The holder counts a call and saves its summary."""
        if self.model.jobs[job_id].status == "running":
            self.wait(self._count_call(self.claims[job_id]))
            assert self.wait(self._save(self.claims[job_id]))

    @rule(job_id=known)
    def cancel(self, job_id: str) -> None:
        """At once while it waits, marked while it runs, unchanged when it has ended."""
        job = self.model.jobs[job_id]
        row = self.wait(self._cancel(job_id))
        assert row is not None
        if job.is_waiting:
            job.leave("cancelled")
        job.wants_cancel = job.wants_cancel or job.status == "running"
        assert row.status == job.status

    async def _cancel(self, job_id: str) -> jobs.JobRow | None:
        async with self._database.begin() as conn:
            return await jobs.cancel(conn, self.stage.tenant_id, job_id)

    async def _save(self, claim: Claim) -> bool:
        async with self._database.connect() as conn:
            return await jobs.save_paid_summary(conn, claim.job.id, claim.token, b"{}")

    async def _count_call(self, claim: Claim) -> bool:
        async with self._database.connect() as conn:
            return await jobs.count_model_call(conn, claim.job.id, claim.token, MAX_MODEL_CALLS)

    def _finish(self, claim: Claim, how: str) -> bool:
        decisions = {
            "succeeded": success(claim),
            "skipped": Finish(status="succeeded", was_compacted=False, reason="below_threshold"),
            "failed": Finish(status="failed", error={"code": "no_summary", "message": "", "retryable": False}),
            "retry": Finish(status="retrying", delay_seconds=3600),
            "release": Finish(status="retrying", counted=False),
            "cancelled": Finish(status="cancelled"),
        }
        return self.wait(self.stage.finish(claim, decisions[how]))

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        """At most one active and one waiting job a session, attempts and crashes bounded: the model asserts those."""
        for session in self.model.sessions:
            self.model.waiting(session.number)
            self.model.active(session.number)
        if not self.model.sessions:
            return
        found = {row[0]: row[1:7] for row in self.wait(self.stage.query(ROWS, self.stage.tenant_id))}
        assert found == {
            job.id: (job.status, job.attempt, job.crashes, job.covers, job.token, job.is_terminal)
            for job in self.model.jobs.values()
        }
        for job in self.model.jobs.values():
            assert job.attempt <= MAX_ATTEMPTS
            assert job.crashes <= MAX_CRASHES

    @invariant()
    def results_are_the_winners(self) -> None:
        """One for each job that succeeded, written under the lease that was current then."""
        if self.model.sessions:
            found = dict(self.wait(self.stage.query(RESULTS, self.stage.tenant_id)))
            assert found == {job.id: job.winner for job in self.model.jobs.values() if job.winner is not None}

    @invariant()
    def only_running_attempts_are_open(self) -> None:
        """Every claim that ended has its end on record."""
        if self.model.sessions:
            found = set(self.wait(self.stage.query(OPEN_ATTEMPTS, self.stage.tenant_id)))
            assert found == {(job.id, job.token) for job in self.model.jobs.values() if job.token is not None}

    @invariant()
    def newer_input_is_never_forgotten(self) -> None:
        """The job of an enqueue, once it has started, covers what had been said by then."""
        for job_id, head in self.model.promises:
            covers = self.model.jobs[job_id].covers
            assert covers is None or covers >= head

    @invariant()
    def no_message_leaves_the_live_view_uncovered(self) -> None:
        """Each message is in the newest result or follows it."""
        for session, row in zip(self.model.sessions, getattr(self, "rows", ()), strict=False):
            view = self.wait(self.stage.live(row))
            covered = 0 if session.live_job is None else self.model.jobs[session.live_job].covers or 0
            assert [stored.seq for stored in view.messages] == list(range(covered + 1, session.head + 1))

    def teardown(self) -> None:
        """Whatever has happened: when nothing goes wrong any more, every accepted job ends."""
        if not self.model.sessions:
            return
        for _ in range(MAX_ROUNDS):
            for job in [job for job in self.model.jobs.values() if not job.is_terminal]:
                self.let_a_pause_pass(job.id)
                self.expire(job.id)
            self.reap()
            for job in [job for job in self.model.jobs.values() if job.is_waiting]:
                self.let_a_pause_pass(job.id)
                self.deliver(job.id, OWNERS[0])
                self.commit(job.id, "succeeded")
            if all(job.is_terminal for job in self.model.jobs.values()):
                break
        self.rows_are_as_the_model_says()
        self.results_are_the_winners()
        assert all(job.is_terminal for job in self.model.jobs.values())


def test_the_queue_keeps_its_promises_in_any_order_of_events(module_database_url: str) -> None:
    """At most one active and one waiting job, results of current leases only, terminal for ever, bounded, all end."""
    loop = asyncio.new_event_loop()
    database = Database(module_database_url, pool_size=2)

    class Machine(QueueMachine):
        def __init__(self) -> None:
            super().__init__(loop, database)

    limits = settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=SLOW)
    try:
        run_state_machine_as_test(Machine, settings=limits)
    finally:
        loop.run_until_complete(database.close())
        loop.close()
