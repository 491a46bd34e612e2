"""The same job without compactd, as one writes it on a queue library: load, call the model, write the result.

No leases, no events, no checks, no repair: what a job costs at least, done the plain way.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anthropic
import psycopg_pool

MODEL = "claude-haiku-4-5"
PROMPT = "Summarise the conversation above, so that the work can go on from the summary alone."
CONNECTIONS = 10  # as many as compactd's worker has
MAX_TOKENS = 20_000
LOAD = "SELECT body FROM plain_messages WHERE kind = %s ORDER BY seq"
WRITE = "INSERT INTO plain_results (run, session, text, input_tokens, started_at) VALUES (%s, %s, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class World:
    """What a worker process keeps open."""

    pool: psycopg_pool.AsyncConnectionPool
    client: anthropic.AsyncAnthropic


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    """Opened when the worker starts."""
    url = os.environ["PLAIN_DATABASE_URL"]
    async with (
        psycopg_pool.AsyncConnectionPool(url, min_size=CONNECTIONS, max_size=CONNECTIONS, timeout=600) as pool,
        anthropic.AsyncAnthropic(max_retries=0) as client,
    ):
        yield World(pool, client)


async def compact(world: World, run: int, session: int, kind: int) -> None:
    """One job: session number `session` of the run, which holds transcript number `kind`."""
    async with world.pool.connection() as connection:
        cursor = await connection.execute("SELECT clock_timestamp()")
        started = (await cursor.fetchone() or (None,))[0]
        cursor = await connection.execute(LOAD, (kind,))
        bodies = [json.loads(body) for (body,) in await cursor.fetchall()]
    history = [{"role": body["role"], "content": body["content"]} for body in bodies]
    del bodies
    async with world.client.messages.stream(
        model=MODEL, max_tokens=MAX_TOKENS, messages=[*history, {"role": "user", "content": PROMPT}]
    ) as stream:
        message = await stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    async with world.pool.connection() as connection:
        await connection.execute(WRITE, (run, session, text, message.usage.input_tokens, started))
