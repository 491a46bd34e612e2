"""The Idempotency-Key header: a POST that creates may be sent again and gives the same answer."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import msgspec
from fastapi import Depends, Header, Request
from starlette.responses import Response

from api import bodies
from api.answers import json_answer
from api.services import services
from compaction.core import jsonbytes
from compaction.errors import InvalidRequest
from compaction.store import idempotency
from compaction.store.engine import Connection
from compaction.store.idempotency import Kept
from compaction.store.tenants import Principal

MAX_KEY_CHARS = 255  # like other job services


def _key(
    given: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="Any name for this request; sent again it gives the same answer",
            json_schema_extra={"minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[ -~]+$"},
        ),
    ] = None,
) -> str | None:
    """The key. Raises InvalidRequest when it cannot be one."""
    if given is not None and not (0 < len(given) <= MAX_KEY_CHARS and given.isascii() and given.isprintable()):
        problem = f"must be 1 to {MAX_KEY_CHARS} printable ASCII characters"
        raise InvalidRequest("The Idempotency-Key is not usable.", fields=(("Idempotency-Key", problem),))
    return given


IdempotencyKey = Annotated[str | None, Depends(_key)]


@dataclass(frozen=True, slots=True)
class Work:
    """One POST in its transaction. `replay` is the answer that it got before: give it, and do nothing."""

    conn: Connection
    replay: Response | None
    _tenant_id: int
    _key: str | None
    _mark: bytes

    async def keep(self, answer: Response) -> Response:
        """`answer`, kept for the next time when the request has a key. Nothing secret may stand in it."""
        if self._key is not None:
            await idempotency.keep(self.conn, self._tenant_id, self._key, self._mark, _kept(answer))
        return answer


@asynccontextmanager
async def once(request: Request, caller: Principal, key: str | None, body: bytes = b"") -> AsyncIterator[Work]:
    """A transaction for a request that may come again under the same `key`; its work and its kept answer stand or fall.

    Raises Conflict while the first one is at work, IdempotencyMismatch when the first one asked for something else.
    """
    mark = b"" if key is None else await bodies.think(len(body), _request_hash, request, body)
    async with services(request).database.begin() as conn:
        before = None if key is None else await idempotency.recall(conn, caller.tenant_id, key, mark)
        yield Work(conn, None if before is None else _replayed(before), caller.tenant_id, key, mark)


def _request_hash(request: Request, body: bytes) -> bytes:
    """What makes a request the same one: method, address and body."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode())
    digest.update(body)
    return digest.digest()


def _kept(answer: Response) -> Kept:
    """`answer` as it is stored, with the header that says where the new thing is."""
    document = {"location": answer.headers.get("location"), "body": msgspec.Raw(bytes(answer.body))}
    return Kept(answer.status_code, jsonbytes.encode(document))


def _replayed(kept: Kept) -> Response:
    """The stored answer once more, marked as such."""
    parts = jsonbytes.members(kept.response)
    location = jsonbytes.decode(parts["location"])
    headers = {"Idempotent-Replayed": "true"} | ({"Location": location} if location else {})
    return json_answer(parts["body"], kept.status, headers=headers)
