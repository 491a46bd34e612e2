"""The Idempotency-Key header: a POST that creates may be sent again and gives the same answer."""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from fastapi import Depends, Header, Request
from starlette.responses import Response

from api.answers import json_answer
from compaction.core import jsonbytes
from compaction.errors import InvalidRequest
from compaction.store.idempotency import Kept

MAX_KEY_CHARS = 255  # like other job services


def _key(
    given: Annotated[
        str | None,
        Header(alias="Idempotency-Key", description="Any name for this request; sent again it gives the same answer"),
    ] = None,
) -> str | None:
    """The key. Raises InvalidRequest when it cannot be one."""
    if given is not None and not (0 < len(given) <= MAX_KEY_CHARS and given.isascii() and given.isprintable()):
        problem = f"must be 1 to {MAX_KEY_CHARS} printable ASCII characters"
        raise InvalidRequest("The Idempotency-Key is not usable.", fields=(("Idempotency-Key", problem),))
    return given


IdempotencyKey = Annotated[str | None, Depends(_key)]


def request_hash(request: Request, body: bytes) -> bytes:
    """What makes a request the same one: method, address and body."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode())
    digest.update(body)
    return digest.digest()


def kept(answer: Response) -> Kept:
    """`answer` as it is stored, with the header that says where the new thing is."""
    document = {"location": answer.headers.get("location"), "body": msgspec.Raw(bytes(answer.body))}
    return Kept(answer.status_code, jsonbytes.encode(document))


def replayed(kept: Kept) -> Response:
    """The stored answer once more, marked as such."""
    parts = jsonbytes.members(kept.response)
    location = jsonbytes.decode(parts["location"])
    headers = {"Idempotent-Replayed": "true"} | ({"Location": location} if location else {})
    return json_answer(parts["body"], kept.status, headers=headers)
