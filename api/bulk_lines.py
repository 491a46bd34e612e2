"""One session of a bulk run as a line of results, shaped like a line of the Message Batches API."""

from __future__ import annotations

from compaction.core import jsonbytes
from compaction.core.bulk import custom_id
from compaction.core.jsonbytes import Json
from compaction.store.bulk_totals import ItemRow

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
