"""A bulk run whose only worker is killed every few seconds ends with exactly one result per session.

`make bulk-drill` plays it with 2,000 sessions. Nothing is paid twice beyond what was in flight at a kill: what a worker
had asked for and not written down when it died.
"""

from __future__ import annotations

import collections
import hashlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compaction.core import jsonbytes
from ops.embedded import Valkey
from ops.fake_provider.batches import BATCHES
from tests.integration.service import ROOT, Service, history

Json = Any
SESSIONS = int(os.environ.get("COMPACTD_DRILL_SESSIONS", "60"))
SLOTS = 8  # calls in flight, at most, and so the most that a kill can cost
KILL_EVERY_SECONDS = 3.0 if SESSIONS < 1_000 else 6.0
PATIENCE_SECONDS = 60 + 2 * SESSIONS
FOLDER = Path(os.environ.get("COMPACTD_TEST_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts"))
REAL = sorted(path for path in (FOLDER / "claude_code").rglob("*.jsonl") if path.stat().st_size > 100_000)
REAL_EVERY = 20  # sessions between two real ones
WAYS = ("live", "message_batches")


@pytest.fixture
def service(tmp_path: Path, database_url: str, valkey: Valkey) -> Iterator[Service]:
    environ = {
        "COMPACTD_WORKER_CONCURRENCY": str(SLOTS),
        "COMPACTD_LEASE_SECONDS": "3",
        "COMPACTD_BATCH_POLL_SECONDS": "0.3",
        "COMPACTD_BATCH_GRACE_SECONDS": "2",
    }
    with Service(tmp_path, database_url, valkey.url(), **environ) as running:
        yield running


def rows(service: Service, sql: str, *values: Json) -> list[tuple[Any, ...]]:
    with psycopg.connect(service.database_url.replace("+psycopg", "")) as conn:
        return conn.execute(sql, values).fetchall()


def store_session(service: Service, number: int, dice: random.Random) -> None:
    """A session of its own; now and then a real one, where the transcripts are at hand."""
    name = f"drill-{number}"
    if number % REAL_EVERY == 0 and number // REAL_EVERY < len(REAL):
        query = {"session_id": name, "model": "claude-haiku-5-5"}
        body = REAL[number // REAL_EVERY].read_bytes()
        assert service.http.post("/v1/sessions/import", content=body, params=query).status_code == 200
        return
    told = history(dice.randint(2, 6), characters=1_000)
    told[0] = {"role": "user", "content": f"Move invoice {number} to the new service."}
    service.put_session(name, told)


def asked_for(service: Service) -> collections.Counter[str]:
    """How often each session's summary was asked for, by what is in the request and nowhere else."""
    asked = [call.body or b"" for call in service.calls]
    for call in service.fake.ledger.calls:
        if (call.method, call.path) == ("POST", BATCHES):
            asked += [jsonbytes.encode(one["params"]) for one in call.json()["requests"]]
    return collections.Counter(hashlib.sha256(body).hexdigest() for body in asked)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.timeout(PATIENCE_SECONDS + 120)
@pytest.mark.parametrize("way", WAYS)
def test_a_worker_killed_every_few_seconds_pays_for_each_session_once(service: Service, way: str) -> None:
    dice = random.Random(7)
    service.play({"steps": [{"good_summary": {}, "delay_s": 0.2}], "batch_s": 1.0})
    for number in range(SESSIONS):
        store_session(service, number, dice)
    run = service.http.post("/v1/bulk", json={"selection": {"id_prefix": "drill-"}, "way": way}).json()
    kills, until = 0, time.monotonic() + PATIENCE_SECONDS
    kill_at = time.monotonic() + KILL_EVERY_SECONDS
    while not (state := service.http.get(f"/v1/bulk/{run['id']}").json())["done"]:
        assert time.monotonic() < until, (state, service.log("worker")[-2_000:])
        if time.monotonic() >= kill_at:
            service.kill_workers()
            service.start_worker()
            kills, kill_at = kills + 1, time.monotonic() + KILL_EVERY_SECONDS * dice.uniform(0.5, 1.5)
        time.sleep(0.1)
    assert kills >= 1
    assert state["request_counts"]["succeeded"] == SESSIONS, state
    per_session = "SELECT session_id, count(*) FROM results GROUP BY session_id"
    assert [count for _, count in rows(service, per_session)] == [1] * SESSIONS
    paid_again = sum(count - 1 for count in asked_for(service).values())
    assert paid_again <= (kills * SLOTS if way == "live" else 0), (paid_again, kills)  # a batch is found again
    print(f"{way}: {SESSIONS} sessions, {kills} kills, {paid_again} calls made again")
