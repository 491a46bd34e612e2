"""Message Batches of the fake: made, looked at, listed, cancelled, and their results as JSON lines in another order."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import msgspec

from compaction.core import jsonbytes
from ops.fake_provider import plan
from ops.fake_provider.http import Request
from ops.fake_provider.plan import Plan
from ops.fake_provider.replies import json_reply, refusal
from ops.fake_provider.script import Script

BATCHES = "/v1/messages/batches"
MAX_REQUESTS = 100_000  # facts/anthropic.md §4
MAX_BYTES = 256 * 1024 * 1024
MAX_ID_CHARS = 64
EXPIRES = timedelta(hours=24)
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
Reply = Callable[[bytes], tuple[int, Any]]  # the status and body that a call with these params would get


class _Request(msgspec.Struct):
    custom_id: str
    params: msgspec.Raw


class _Create(msgspec.Struct):
    requests: list[_Request]


@dataclass(slots=True)
class _Batch:
    """One batch; its results are made at once and shown when its time has come."""

    id: str
    created: datetime
    ends_at: float
    lines: list[dict[str, Any]]
    cancelled_at: datetime | None = None
    ended: bool = False

    def settle(self) -> None:
        """Ends it when it is due; a cancelled one ends at once and tells so of what it had not done."""
        if self.ended:
            return
        if self.cancelled_at is not None and time.monotonic() < self.ends_at:
            self.lines = [line | {"result": {"type": "canceled"}} for line in self.lines]
            self.ended = True
        self.ended = self.ended or time.monotonic() >= self.ends_at

    def document(self, base: str) -> dict[str, Any]:
        """As the API tells of it: counts are final only at the end."""
        self.settle()
        counts = dict.fromkeys(_COUNTS, 0)
        for line in self.lines:
            counts[line["result"]["type"] if self.ended else "processing"] += 1
        at = self.created.isoformat().replace("+00:00", "Z")
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if self.ended else "canceling" if self.cancelled_at else "in_progress",
            "request_counts": counts,
            "created_at": at,
            "expires_at": (self.created + EXPIRES).isoformat().replace("+00:00", "Z"),
            "ended_at": at if self.ended else None,
            "archived_at": None,
            "cancel_initiated_at": at if self.cancelled_at else None,
            "results_url": f"{base}{BATCHES}/{self.id}/results" if self.ended else None,
        }


@dataclass(slots=True)
class Batches:
    """All batches so far, oldest first."""

    made: dict[str, _Batch] = field(default_factory=dict)

    def answer(self, request: Request, number: int, script: Script, reply: Reply) -> Plan:
        """What a request about batches gets; `reply` is what each single call would get."""
        _, _, rest = request.path.partition(BATCHES)
        name, _, what = rest.strip("/").partition("/")
        if not name:
            return self._create(request, number, script, reply) if request.method == "POST" else self._list(request)
        batch = self.made.get(name)
        if batch is None:
            return refusal(HTTPStatus.NOT_FOUND, "not_found_error", "Not found", number)
        base = _base(request.headers)
        match request.method, what:
            case "GET", "":
                return json_reply(batch.document(base), number)
            case "GET", "results":
                batch.settle()
                return _results(batch) if batch.ended else refusal(404, "not_found_error", "Not found", number)
            case "POST", "cancel":
                batch.cancelled_at = batch.cancelled_at or datetime.now(UTC)
                return json_reply(batch.document(base), number)
        return refusal(HTTPStatus.NOT_FOUND, "not_found_error", "Not found", number)

    def _create(self, request: Request, number: int, script: Script, reply: Reply) -> Plan:
        if len(request.body) > MAX_BYTES:
            return refusal(413, "request_too_large", "Request exceeds the maximum size", number)
        try:
            asked = msgspec.json.decode(request.body, type=_Create).requests
        except msgspec.DecodeError:
            return refusal(400, "invalid_request_error", "requests: Field required", number)
        if problem := _problem(asked):
            return refusal(400, "invalid_request_error", problem, number)
        seconds = script.batch_s / script.time_divider
        made = _Batch(
            id=f"msgbatch_fake{len(self.made) + 1:08d}",
            created=datetime.now(UTC),
            ends_at=time.monotonic() + seconds,
            lines=[_line(one, reply, expire=script.batch_expires) for one in asked],
        )
        self.made[made.id] = made
        return json_reply(made.document(_base(request.headers)), number)

    def _list(self, request: Request) -> Plan:
        found = [batch.document(_base(request.headers)) for batch in reversed(self.made.values())]
        ends = {"first_id": found[0]["id"] if found else None, "last_id": found[-1]["id"] if found else None}
        return json_reply({"data": found, "has_more": False, **ends}, 0)


def _line(asked: _Request, reply: Reply, *, expire: bool) -> dict[str, Any]:
    if expire:
        return {"custom_id": asked.custom_id, "result": {"type": "expired"}}
    status, body = reply(bytes(asked.params))
    if status == HTTPStatus.OK:
        return {"custom_id": asked.custom_id, "result": {"type": "succeeded", "message": body}}
    return {"custom_id": asked.custom_id, "result": {"type": "errored", "error": body}}


def _problem(asked: list[_Request]) -> str | None:
    ids = [one.custom_id for one in asked]
    if not ids or len(ids) > MAX_REQUESTS:
        return f"requests: must have between 1 and {MAX_REQUESTS} items"
    if len(set(ids)) < len(ids):
        return "requests: custom_id must be unique"
    fit = all(0 < len(name) <= MAX_ID_CHARS and name.replace("-", "_").isidentifier() for name in ids)
    return None if fit else "requests.0.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"


def _results(batch: _Batch) -> Plan:
    body = b"".join(jsonbytes.encode(line) + b"\n" for line in reversed(batch.lines))  # any order but that of asking
    return Plan(head=plan.whole(HTTPStatus.OK, {"content-type": "application/x-jsonl"}, body))


def _base(headers: Mapping[str, str]) -> str:
    return f"http://{headers.get('host', '127.0.0.1')}"
