"""One session of a bulk run: as a line of results, shaped like one of the Message Batches API, and for the report."""

from __future__ import annotations

from compaction.core import jsonbytes
from compaction.core.bulk import Way, custom_id
from compaction.core.bulk_report import Outcome
from compaction.core.jsonbytes import Json
from compaction.store.bulk_totals import ItemRow
from compaction.summarizers.models import BATCH_FACTOR

_TYPES = {
    "found": "processing",
    "batched": "processing",
    "queued": "processing",
    "succeeded": "succeeded",
    "failed": "errored",
    "cancelled": "canceled",
    "expired": "expired",
    "skipped": "skipped",
}


def line(row: ItemRow) -> bytes:
    """`{custom_id, session_id, result}` and a line break."""
    told = {"custom_id": custom_id(row.id), "session_id": row.session_name, "result": _result(row)}
    return jsonbytes.encode(told) + b"\n"


def outcome(row: ItemRow, way: Way) -> Outcome:
    """The item as the report counts it."""
    dropped = row.dropped or {}
    expected = row.live_usd if way == "live" or row.live_usd is None else row.live_usd * BATCH_FACTOR
    return Outcome(
        session_id=row.session_name,
        state=row.state,
        cause=row.reason if row.state == "skipped" else row.error_code,
        strategy=row.strategy,
        before=row.pre_tokens,
        after=row.post_tokens,
        dropped_rounds=_count(dropped.get("rounds")),
        dropped_tokens=_count(dropped.get("tokens")),
        seconds=row.seconds,
        expected_usd=expected,
        spent_usd=row.cost_usd,
    )


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _result(row: ItemRow) -> dict[str, Json]:
    told: dict[str, Json] = {"type": _TYPES[row.state]}
    if row.state == "skipped":
        return told | {"reason": row.reason}
    if row.job_id is not None:
        told["job_id"] = row.job_id
    if row.state == "failed":
        told["error"] = {"code": row.error_code}
    if row.state == "succeeded":
        told |= {
            "result_url": f"/v1/compactions/{row.job_id}/result",
            "strategy": row.strategy,
            "model": row.model,
            "pre_tokens": row.pre_tokens,
            "post_tokens": row.post_tokens,
            "dropped": row.dropped,
            "cost_usd": str(row.cost_usd),
        }
    return told
