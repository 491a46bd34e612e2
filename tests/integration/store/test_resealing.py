"""What was stored before is written again with the key that writes now; then the old key can go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.core.body_keys import BodyKey
from compaction.core.webhooks import EVENTS
from compaction.store import (
    bodies,
    bulk_batches,
    bulk_items,
    bulk_runs,
    hooks,
    idempotency,
    jobs,
    session_state,
    sessions,
    webhooks,
)
from compaction.store.bulk_batches import ItemAnswer
from compaction.store.bulk_items import NewItem
from compaction.store.bulk_runs import NewRun
from compaction.store.engine import Connection
from compaction.store.idempotency import Kept
from compaction.store.resealing import BATCH, reseal, sealed_columns
from tests.integration.store.stage import Stage, message, success

pytestmark = pytest.mark.anyio

OLD, NEW = BodyKey("old", b"o" * 32), BodyKey("new", b"n" * 32)
SECRET = "whsec_" + "A" * 43 + "="


@pytest.fixture
def store_url(database_url: str) -> str:
    """A database for each test: all of it is rewritten."""
    return database_url


@pytest.fixture(autouse=True)
def without_keys_afterwards() -> Iterator[None]:
    yield
    bodies.use_keys(())


async def filled(stage: Stage) -> str:
    """One of everything that holds words; the session's name."""
    session = await stage.session()
    await stage.append(session, *[message(f"word {place}", uuid=f"u{place}") for place in range(5)])
    claim = await stage.running(session, instructions="keep the word")
    await stage.finish(claim, success(claim, "the words"))
    running = await stage.running(session, instructions="keep it again")
    async with stage.database.begin() as conn:
        parameters = {"system": b'"the system word"'}
        await sessions.put(conn, stage.tenant_id, session.name, parameters=parameters)
        await session_state.put(conn, session.id, "memory", "notes", b'"a word to remember"')
        await jobs.save_paid_summary(conn, running.job.id, running.token, b'{"text": "a paid word"}')
        await hooks.add(conn, stage.tenant_id, event="pre_compact", url="https://x/", secret=SECRET, timeout_seconds=5)
        made = await webhooks.add(conn, stage.tenant_id, url="https://x/", events=EVENTS, secret=SECRET)
        await webhooks.rotate(conn, stage.tenant_id, made.id, secret=SECRET, overlap_seconds=60)
        await idempotency.keep(conn, stage.tenant_id, "k", b"hash", Kept(200, b'{"word": 1}'))
        await answered_item(conn, stage, session.id)
    return session.name


async def answered_item(conn: Connection, stage: Stage, session_id: int) -> None:
    """A session of a bulk run whose batch has answered."""
    order = NewRun(tenant_id=stage.tenant_id, selection={}, way="message_batches", instructions="keep a word")
    run = await bulk_runs.create(conn, order)
    item = NewItem(
        session_id=session_id,
        state="found",
        reason=None,
        content_hash="h",
        recipe="r",
        covers_through_seq=1,
        tokens=1,
        live_usd=None,
    )
    await bulk_items.add(conn, run, [item])
    ((item_id,),) = await conn.exec_driver_sql("SELECT id FROM bulk_items WHERE run_id = %s", (run.id,))
    batch_id, feeds = await bulk_batches.intend(conn, run, [item_id])
    answer = ItemAnswer(item_id, feeds[item_id], "batched", b'["an answered word"]')
    await bulk_batches.take_over(conn, batch_id, [answer])


async def read_back(stage: Stage, name: str) -> list[object]:
    """The words, through the store."""
    async with stage.database.begin() as conn:
        session = await sessions.get(conn, stage.tenant_id, name)
        assert session is not None
        live = await sessions.load_live(conn, session.id)
        listed, _ = await jobs.list_jobs(conn, stage.tenant_id)
        endpoints = await hooks.endpoints(conn, stage.tenant_id)
        kept = await idempotency.recall(conn, stage.tenant_id, "k", b"hash")
        return [
            [json.loads(one.body)["content"] for one in await sessions.load_full(conn, session.id)],
            live.result_body and live.result_body.summary[0].content,
            sorted(str(job.instructions) for job in listed),
            await sessions.load_parameters(conn, session.id),
            await session_state.get(conn, session.id, "memory", "notes"),
            [endpoint.secret for endpoint in endpoints],
            kept,
        ]


@pytest.mark.parametrize("before", [(), (OLD,)])
async def test_everything_is_read_with_the_new_key_alone(stage: Stage, before: tuple[BodyKey, ...]) -> None:
    bodies.use_keys(before)
    name = await filled(stage)
    words = await read_back(stage, name)
    bodies.use_keys([NEW, *before])
    changed = await reseal(stage.database)
    assert changed["messages.body"] == 5
    assert {column for column, count in changed.items() if count == 0} == set()
    bodies.use_keys([NEW])
    assert await read_back(stage, name) == words
    assert set((await reseal(stage.database)).values()) == {0}


async def test_more_than_one_batch_is_rewritten(stage: Stage) -> None:
    count = 2 * BATCH + 1
    session = await stage.session(count)
    bodies.use_keys([NEW])
    assert (await reseal(stage.database))["messages.body"] == count
    assert {row[0] for row in await stage.query("SELECT get_byte(body, 0) FROM messages")} == {2}
    assert len((await stage.live(session)).messages) == count


def test_every_column_with_bodies_is_known() -> None:
    assert {f"{table.name}.{column.name}" for table, column in sealed_columns()} == {
        "bulk_items.answers",
        "bulk_runs.instructions",
        "hooks.secret",
        "idempotency_keys.response",
        "jobs.instructions",
        "jobs.paid_summary",
        "messages.body",
        "results.body",
        "session_state.body",
        "sessions.parameters",
        "webhook_endpoints.old_secret",
        "webhook_endpoints.secret",
    }


@pytest.mark.parametrize("keys", ["", f"k1:{b64encode(b'k' * 32).decode()}"])
def test_it_is_a_command_that_says_what_it_did(database_url: str, repository: Path, keys: str) -> None:
    environ = os.environ | {
        "COMPACTD_DATABASE_URL": database_url,
        "COMPACTD_REDIS_URL": "redis://127.0.0.1:1/0",
        "COMPACTD_BODY_KEYS": keys,
    }
    command = [sys.executable, "-m", "compaction.store.resealing"]
    done = subprocess.run(command, cwd=repository, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if keys else 1), done.stderr
    assert ('"messages.body": 0' if keys else "COMPACTD_BODY_KEYS is not set") in done.stderr
