"""Whose turn it is: classes, tenants and times, through the running service and through the reconciler alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from compaction.store import jobs, workers
from compaction.store.engine import Database
from tests.integration.service import KEY, Service, history
from tests.integration.store.stage import Stage, staged
from worker.dispatcher import Dispatcher

CALL_SECONDS = 0.5
SLOTS = 10


@dataclass
class RememberingBell:
    """Remembers the rings, which nobody hears until `hear` is called."""

    rung: list[str] = field(default_factory=list)
    out: int | None = 0

    async def ring_all(self, job_ids: Sequence[str]) -> bool:
        self.rung += job_ids
        return True

    async def depth(self) -> int | None:
        return self.out

    def hear(self) -> list[str]:
        rung, self.rung = self.rung, []
        return rung


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url, pool_size=10)
    yield opened
    await opened.close()


@pytest.fixture
async def stage(database: Database) -> Stage:
    """A tenant, and one worker with SLOTS slots."""
    async with database.begin() as conn:
        await workers.beat_worker(conn, "w:1", SLOTS, 0, 0.0, False)
    return await staged(database)


def dispatcher(database: Database, bell: RememberingBell, **fields: Any) -> Dispatcher:  # noqa: ANN401 - any field
    return Dispatcher(database=database, doorbell=bell, redispatch_seconds=30.0, lease_seconds=60.0, **fields)


async def enqueued(stage: Stage, count: int, trigger: Any = "auto") -> list[str]:  # noqa: ANN401 - a trigger
    return [(await stage.enqueue(await stage.session(), trigger)).job.id for _ in range(count)]


@pytest.mark.anyio
async def test_no_more_is_rung_for_than_there_will_soon_be_slots_for(database: Database, stage: Stage) -> None:
    """Ten free slots: fifteen rings; once ten run and five lie in Redis, none."""
    bell = RememberingBell()
    made = await enqueued(stage, 40)
    turn = dispatcher(database, bell).turn
    assert await turn()
    assert bell.hear() == made[:15]
    for job_id in made[:10]:
        await stage.claim(job_id)
    bell.out = 5
    assert await turn()  # more wait
    assert bell.hear() == []


@pytest.mark.anyio
async def test_a_leaving_silent_or_paused_worker_has_no_slots(database: Database, stage: Stage) -> None:
    bell = RememberingBell()
    await enqueued(stage, 3)
    async with database.begin() as conn:
        await workers.beat_worker(conn, "w:1", SLOTS, 0, 0.0, True)
        await workers.beat_worker(conn, "w:2", SLOTS, 0, 0.0, False)
        await conn.exec_driver_sql("UPDATE workers SET beat_at = now() - interval '61 seconds' WHERE owner = 'w:2'")
        await workers.beat_worker(conn, "w:3", SLOTS, 0, 0.0, False, "claude-x")
        await conn.exec_driver_sql("INSERT INTO provider_pauses (provider, phase) VALUES ('claude-x', 'paused')")
    await dispatcher(database, bell).turn()
    assert bell.hear() == []
    await stage.change("UPDATE provider_pauses SET phase = 'open'")
    await dispatcher(database, bell).turn()
    assert len(bell.hear()) == 3


@pytest.mark.anyio
async def test_a_provider_on_trial_gets_one_job_at_a_time(database: Database, stage: Stage) -> None:
    """Jobs that ran before the trial do not count; the one that tries does."""
    bell = RememberingBell()
    older = await stage.running(await stage.session())
    made = await enqueued(stage, 3)
    async with database.begin() as conn:
        await workers.beat_worker(conn, "w:1", SLOTS, 1, 0.0, False, "claude-x")
        await conn.exec_driver_sql(
            "INSERT INTO provider_pauses (provider, phase, trial_token) VALUES ('claude-x', 'trial', %s)",
            (older.token,),
        )
    turn = dispatcher(database, bell).turn
    await turn()
    assert bell.hear() == made[:1]
    await stage.claim(made[0])
    await turn()
    assert bell.hear() == []


@pytest.mark.anyio
async def test_rings_of_a_time_when_the_provider_was_paused_are_repeated_at_once(
    database: Database, stage: Stage
) -> None:
    bell = RememberingBell(out=1)  # something lies in Redis, so it is no loss of Redis that helps here
    made = await enqueued(stage, 2)
    turn = dispatcher(database, bell).turn
    await turn()
    assert bell.hear() == made
    await turn()
    assert bell.hear() == []
    await stage.change("INSERT INTO provider_pauses (provider, phase, changed_at) VALUES ('claude-x', 'open', now())")
    await turn()
    assert bell.hear() == made


@pytest.mark.anyio
async def test_when_no_ring_lies_in_redis_those_that_were_lost_are_repeated_soon(
    database: Database, stage: Stage
) -> None:
    bell = RememberingBell()
    made = await enqueued(stage, 1)
    turn = dispatcher(database, bell).turn
    await turn()
    await stage.change("UPDATE jobs SET dispatched_at = now() - interval '4 seconds'")
    bell.out = 1
    await turn()
    assert bell.hear() == made  # the first ring alone: this one may be it that lies there
    bell.out = 0
    await turn()
    assert bell.hear() == made


@pytest.mark.anyio
async def test_nothing_is_marked_while_nobody_can_ring(database: Database, stage: Stage) -> None:
    bell = RememberingBell(out=None)
    made = await enqueued(stage, 2)
    turn = dispatcher(database, bell).turn
    assert not await turn()
    bell.out = 0
    await turn()
    assert bell.hear() == made


@pytest.mark.anyio
async def test_two_leaders_ring_once_for_each_job_and_keep_to_the_shares(database: Database, stage: Stage) -> None:
    """Turns of two leaders at the same moment, again and again, while jobs are taken and new ones come."""
    bells = [RememberingBell(), RememberingBell()]
    turns = [dispatcher(database, bell).turn for bell in bells]
    made = await enqueued(stage, 60)
    rung: list[str] = []
    while len(rung) < 60:
        await asyncio.gather(*(turn() for turn in turns))
        heard = bells[0].hear() + bells[1].hear()
        assert len(heard) <= 2 * 15
        rung += heard
        for job_id in heard:
            claim = await stage.claim(job_id)
            await stage.finish(claim, jobs.Finish(status="succeeded", was_compacted=False))
    assert sorted(rung) == sorted(made)


@pytest.mark.anyio
async def test_more_tenants_than_a_turn_looks_at_all_have_their_turn(
    database: Database, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compaction.store.dispatching.MAX_TENANTS", 4)
    made = set()
    for _ in range(10):
        made.update(await enqueued(await staged(database), 1))
    bell = RememberingBell()
    turn = dispatcher(database, bell).turn
    for _ in range(3):
        await turn()
    assert set(bell.hear()) == made


@pytest.mark.anyio
async def test_a_turn_of_the_leader_gives_no_tenant_more_than_it_may_have_in_flight(
    database: Database, stage: Stage
) -> None:
    await enqueued(stage, 20)
    other = await staged(database)
    await enqueued(other, 2)
    bell = RememberingBell()
    await dispatcher(database, bell, tenant_jobs=3).turn()
    assert len(bell.hear()) == 5


# ------------------------------------------------------------------------------------------------ the running service


@pytest.fixture
def service(tmp_path: Path, database_url: str, redis_url: str) -> Iterator[Service]:
    """A service of its own whose model needs half a second, with ten slots."""
    with Service(tmp_path, database_url, redis_url, COMPACTD_WORKER_CONCURRENCY=str(SLOTS)) as running:
        running.play([{"good_summary": {}, "delay_s": CALL_SECONDS}])
        yield running


def another_tenant(service: Service) -> httpx2.Client:
    """A client with a key of a tenant of its own."""
    wanted = {"tenant": "small", "scopes": ["sessions:write", "jobs:write", "read"]}
    key = service.http.post("/v1/api-keys", json=wanted, headers={"Authorization": f"Bearer {KEY}"}).json()["key"]
    return httpx2.Client(base_url=service.http.base_url, headers={"Authorization": f"Bearer {key}"}, timeout=90)


def fill_with_bulk(service: Service, count: int) -> None:
    """As many sessions as an archive has, each with a bulk job: copies of one, written behind the API's back."""
    service.put_session("original", history(4, characters=400))
    with psycopg.connect(service.database_url.replace("+psycopg", "")) as conn:
        conn.execute(
            "INSERT INTO sessions (tenant_id, name, model, head_seq) "
            "SELECT tenant_id, name || n, model, head_seq FROM sessions, generate_series(1, %s) n "
            "WHERE name = 'original'",
            (count,),
        )
        conn.execute(
            "INSERT INTO messages (session_id, seq, uuid, role, body_bytes, body) "
            "SELECT copy.id, m.seq, m.uuid, m.role, m.body_bytes, m.body FROM sessions copy, messages m "
            "JOIN sessions s ON s.id = m.session_id WHERE s.name = 'original' AND copy.name LIKE 'original_%'"
        )
        conn.execute(
            "INSERT INTO jobs (tenant_id, session_id, trigger, priority, max_attempts, deadline_at) "
            "SELECT tenant_id, id, 'bulk', 30, 5, now() + interval '1 day' FROM sessions "
            "WHERE name LIKE 'original_%'"
        )


def run_ten_jobs(client: httpx2.Client, name: str) -> None:
    """Ten manual jobs of a tenant, from the first enqueue to the last end."""
    for number in range(10):
        address = f"/v1/sessions/{name}{number}"
        client.put(address, json={"model": "claude-haiku-4-5"}).raise_for_status()
        client.post(f"{address}/messages", json={"messages": history(4, characters=400)}).raise_for_status()
    wanted = [{"session_id": f"{name}{number}", "trigger": "manual"} for number in range(10)]
    made = [client.post("/v1/compactions", json=body).json()["id"] for body in wanted]
    for job_id in made:
        done = client.get(f"/v1/compactions/{job_id}", headers={"Prefer": "wait=60"}).json()
        assert done["status"] == "succeeded", done


def most_overtaken(service: Service, name: str) -> int:
    """The most bulk jobs that started while one of the named jobs waited, by the database's clock."""
    with psycopg.connect(service.database_url.replace("+psycopg", "")) as conn:
        row = conn.execute(
            "SELECT max((SELECT count(*) FROM jobs b WHERE b.trigger = 'bulk' "
            "AND b.started_at > j.created_at AND b.started_at < j.started_at)) "
            "FROM jobs j JOIN sessions s ON s.id = j.session_id WHERE s.name LIKE %s",
            (f"{name}%",),
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_ten_jobs_behind_an_archive_of_ten_thousand_wait_for_two_waves_at_most(service: Service) -> None:
    """Counted in bulk jobs that overtake them, not in seconds: behind a plain queue it would be thousands."""
    with another_tenant(service) as client:
        run_ten_jobs(client, "warm")
        fill_with_bulk(service, 10_000)
        service.until(lambda: len(service.calls) > 15 + SLOTS, "the archive does not run")
        run_ten_jobs(client, "crowd")
    assert most_overtaken(service, "crowd") <= 2 * SLOTS


def test_manual_jobs_go_before_automatic_ones_and_these_before_bulk(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """One slot, and it is taken while nine jobs come in, the urgent ones last: they start in the order of classes.

    The first that waits is rung for at once, so it is a manual one here.
    """
    with Service(tmp_path, database_url, redis_url, COMPACTD_WORKER_CONCURRENCY="1") as service:
        names = [f"{trigger}-{number}" for trigger in ("bulk", "auto", "manual") for number in range(3)]
        for name in ("running", *names):
            service.put_session(name, history(30), settings={"context_window": 30_000})
        service.play([{"good_summary": {}, "delay_s": 3.0}, {"good_summary": {}}])
        service.enqueue("running")
        service.until(lambda: service.calls, "no call was made")
        made = [service.enqueue(name, trigger=name.split("-")[0])["id"] for name in (names[-1], *names[:-1])]
        ends = [service.wait(job_id) for job_id in made]
        started = [job["session_id"].split("-")[0] for job in sorted(ends, key=lambda job: job["started_at"])]
        assert started == ["manual"] * 3 + ["auto"] * 3 + ["bulk"] * 3


def test_a_job_for_later_starts_no_sooner_and_holds_up_nobody(service: Service) -> None:
    service.put_session("later", history(4, characters=400))
    service.put_session("now", history(4, characters=400))
    later = datetime.now(UTC) + timedelta(seconds=4)
    planned = service.enqueue("later", not_before=later.isoformat())
    assert service.compact("now")["status"] == "succeeded"
    assert service.job(planned["id"])["status"] == "queued"
    done = service.wait(planned["id"])
    assert done["status"] == "succeeded"
    assert datetime.fromisoformat(done["started_at"]) >= later
