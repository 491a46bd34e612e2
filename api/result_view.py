"""A result as its document: envelopes for those who store them, api_messages for those who go on at once.

And in the formats of others (`compaction.formats.output`).
"""

from __future__ import annotations

import msgspec

from api.schemas.results import ResultFormat
from compaction import errors
from compaction.core import jsonbytes, wire
from compaction.core.messages import encode_message
from compaction.formats.output import Output
from compaction.store.results import ResultRow
from compaction.store.surroundings import Surroundings


def written(name: ResultFormat, row: ResultRow, place: Surroundings | None) -> bytes:
    """The bytes of a stored result in a format; all but envelopes need what stands around the result."""
    if name == "envelopes":
        return result_document(row)
    if place is None:
        raise errors.Internal
    return _output(row, place).written(name)


def result_document(row: ResultRow) -> bytes:
    """The JSON of `api.schemas.results.Result` for a stored result."""
    envelopes = [msgspec.Raw(encode_message(message)) for message in row.body.messages]
    attachments = [msgspec.Raw(encode_message(message)) for message in row.body.attachments]
    api_messages = [msgspec.Raw(jsonbytes.encode(message)) for message in wire.api_messages(row.body.messages)]
    dropped = row.dropped
    return jsonbytes.encode(
        {
            "job_id": row.job_id,
            "session_id": row.session_name,
            "strategy": row.strategy,
            "boundary": envelopes[0],
            "messages": envelopes,
            "api_messages": api_messages,
            "attachments": attachments,
            "pre_tokens": row.pre_tokens,
            "post_tokens": row.post_tokens,
            "usage": row.usage.to_dict(),
            "cost_usd": None if row.cost_usd is None else float(row.cost_usd),
            "ptl_attempts": row.ptl_attempts,
            "dropped": {"rounds": dropped.rounds, "messages": dropped.messages, "tokens": dropped.tokens},
            "context_management": row.context_management,
            "covers_through_seq": row.covers_through_seq,
            "prefix_hash": row.prefix_hash,
            "degraded": row.degraded,
            "hook_results": row.hook_results,
            "created_at": row.created_at,
        }
    )


def _output(row: ResultRow, place: Surroundings) -> Output:
    return Output(
        session_id=row.session_name or row.job_id,  # of an inline job: a log needs some name for its rows
        model=place.model,
        messages=row.body.messages,
        parameters=place.parameters,
        context_management=row.context_management,
        last_uuid=place.last_uuid,
        created_at=row.created_at,
    )
