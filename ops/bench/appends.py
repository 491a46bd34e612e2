"""Appending a batch over HTTP, against the bare SQL insert of the same rows, in turn."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from statistics import median
from typing import Any

import psycopg

from ops.bench.api_process import KEY, ApiProcess
from ops.bench.transcripts import transcript
from ops.embedded.ports import LOOPBACK

MESSAGES, BYTES = 100, 200_000  # of a batch; 2 KB a message, as in real sessions (facts of the design)
BLOCKS, ROUNDS, WARM_UP = (
    5,
    40,
    20,
)  # the least disturbed block counts: on a busy machine two processes lose more than one
_TABLE = "CREATE TABLE bare (LIKE messages INCLUDING ALL)"
_INSERT = """
INSERT INTO bare (session_id, seq, uuid, role, partial, starts_live, body_bytes, body)
SELECT 1, seq, uuid, role, false, false, length(body), body
FROM unnest(%b::bigint[], %b::text[], %b::text[], %b::bytea[]) AS batch(seq, uuid, role, body)
"""


@dataclass(frozen=True, slots=True)
class Appending:
    """Medians in milliseconds."""

    http_ms: float
    bare_ms: float

    @property
    def ratio(self) -> float:
        """How many bare inserts one append takes."""
        return self.http_ms / self.bare_ms


def measured(api: ApiProcess) -> Appending:
    """The p50 of both, on connections that are open, in the block of rounds where they are closest."""
    http, bare = [], []
    with (
        closing(HTTPConnection(LOOPBACK, api.port)) as client,
        psycopg.connect(api.database_url.replace("+psycopg", ""), autocommit=True) as connection,
    ):
        connection.execute(_TABLE)
        _call(client, "PUT", "/v1/sessions/appends", b'{"model": "claude-haiku-4-5"}')
        for number in range(WARM_UP + BLOCKS * ROUNDS):
            bodies = transcript(number, messages=MESSAGES, size_bytes=BYTES)
            http.append(_append(client, bodies))
            bare.append(_insert(connection, bodies, number * MESSAGES))
    starts = range(WARM_UP, WARM_UP + BLOCKS * ROUNDS, ROUNDS)
    blocks = [Appending(_p50_ms(http[start:][:ROUNDS]), _p50_ms(bare[start:][:ROUNDS])) for start in starts]
    return min(blocks, key=lambda block: block.ratio)


def _p50_ms(seconds: Sequence[float]) -> float:
    return 1000 * median(seconds)


def _append(client: HTTPConnection, bodies: Sequence[bytes]) -> float:
    content = b'{"messages":[' + b",".join(bodies) + b"]}"
    begin = time.perf_counter()
    answer = _call(client, "POST", "/v1/sessions/appends/messages", content)
    seconds = time.perf_counter() - begin
    if answer["appended"] != len(bodies):
        raise RuntimeError("the append was not stored")
    return seconds


def _call(client: HTTPConnection, method: str, path: str, body: bytes) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    client.request(method, path, body, headers)
    answer = client.getresponse()
    content = answer.read()
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise RuntimeError(f"{method} {path} was refused: {answer.status}")
    decoded: dict[str, Any] = json.loads(content)
    return decoded


def _insert(connection: psycopg.Connection, bodies: Sequence[bytes], before: int) -> float:
    decoded = [json.loads(body) for body in bodies]
    values = (
        list(range(before + 1, before + 1 + len(bodies))),
        [message.get("uuid") for message in decoded],
        [message["role"] for message in decoded],
        list(bodies),
    )
    begin = time.perf_counter()
    connection.execute(_INSERT, values)
    return time.perf_counter() - begin
