"""Answers: JSON with its headers, lists with opaque cursors, and the pieces that big answers are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from compaction.core import jsonbytes

JSON_TYPE = "application/json"
LINES_TYPE = "application/x-ndjson"


def json_answer(
    body: BaseModel | Mapping[str, Any] | bytes, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer with a JSON body: a schema, plain data (may hold msgspec.Raw), or ready bytes."""
    return Response(encoded(body), status, headers=dict(headers or {}), media_type=JSON_TYPE)


def fresh_answer(
    request: Request,
    body: BaseModel | bytes,
    *,
    headers: Mapping[str, str] | None = None,
    media_type: str = JSON_TYPE,
) -> Response:
    """An answer that changes while one looks: ETag, never stored; 304 when the caller has this very state."""
    data = encoded(body)
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    extra = {"ETag": tag, "Cache-Control": "no-store", **(headers or {})}
    known = {item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=extra)
    return Response(data, headers=extra, media_type=media_type)


def encoded(body: BaseModel | Mapping[str, Any] | bytes) -> bytes:
    """The JSON bytes of a body."""
    if isinstance(body, bytes):
        return body
    if isinstance(body, BaseModel):
        return body.model_dump_json(by_alias=True).encode()
    return jsonbytes.encode(body)


def page(items: Sequence[BaseModel], next_cursor: str | None) -> Response:
    """A list: {data, next_cursor, has_more}."""
    raws = [msgspec.Raw(encoded(item)) for item in items]
    return json_answer({"data": raws, "next_cursor": next_cursor, "has_more": next_cursor is not None})


def list_of(bodies: Iterable[bytes]) -> bytes:
    """A complete list whose elements stand as the bytes they are."""
    return b'{"data":[' + b",".join(bodies) + b'],"next_cursor":null,"has_more":false}'
