"""The body that is stored for a row: the envelope of DESIGN §8 around the content's own bytes."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import BOUNDARY_KIND
from compaction.formats.rows import COMPACT, MAX_TOKENS, RawRow, Row, name

MICROCOMPACT_KIND = "microcompact_boundary"  # metadata.kind of the marker where old tool results were cleared
SOURCE = "claude_code"  # metadata.source: who made a boundary that is not ours
MAX_TRIGGER_CHARS = 40  # auto and manual are what is written


def message_body(raw: RawRow, row: Row, *, is_compact_summary: bool) -> bytes:
    """The body of a user or assistant row; its content is cut out of the row, never written anew.

    Never `is_sidechain`: a sub-agent's file becomes a session of its own, and there its rows are the conversation.
    """
    content = bytes(raw.message.content) if raw.message is not None else b'""'
    flags = {"is_meta": row.is_meta, "is_compact_summary": is_compact_summary}
    return join(
        {
            "uuid": row.uuid,
            "parent_uuid": row.parent_uuid,
            "role": row.kind,
            "content": content,
            "api_message_id": row.message_id,
            "created_at": name(raw.timestamp),
            "model": row.model,
            "usage": row.usage.to_dict() if row.usage is not None else None,
        }
        | {flag: True for flag, on in flags.items() if on}
    )


def boundary_body(raw: RawRow, row: Row) -> bytes:
    """The body of a boundary row: a system message that only its metadata tells apart."""
    content = bytes(raw.content)
    return join(
        {
            "uuid": row.uuid,
            "parent_uuid": row.parent_uuid or row.logical_parent_uuid,
            "role": "system",
            "content": content if content.startswith(b'"') else b'""',
            "created_at": name(raw.timestamp),
            "metadata": boundary_metadata(raw, row),
        }
    )


def boundary_metadata(raw: RawRow, row: Row) -> dict[str, Json]:
    """What a boundary row says about its compaction, under our names; fields that make no sense are left out."""
    if row.kind == COMPACT:
        found = raw.compact_metadata or {}
        facts: dict[str, Json] = {"kind": BOUNDARY_KIND}
    else:
        found = raw.microcompact_metadata or {}
        cleared = found.get("compactedToolIds")
        facts = {
            "kind": MICROCOMPACT_KIND,
            "tokens_saved": count(found.get("tokensSaved")),
            "compacted_tool_ids": [call for call in cleared if name(call)] if isinstance(cleared, list) else [],
        }
    facts |= {"trigger": trigger(found.get("trigger")), "pre_tokens": count(found.get("preTokens")), "source": SOURCE}
    return {key: value for key, value in facts.items() if value is not None}


def trigger(value: Json) -> str | None:
    """The trigger's name, where it is one."""
    return value if name(value) and len(value) <= MAX_TRIGGER_CHARS else None


def count(value: Json) -> int | None:
    """A count of tokens, where it is one."""
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None


def join(members: Mapping[str, Json]) -> bytes:
    """A JSON object in which values that are bytes stand as they are; members that are None are left out."""
    parts = [
        jsonbytes.encode(key) + b":" + (value if isinstance(value, bytes) else jsonbytes.encode(value))
        for key, value in members.items()
        if value is not None
    ]
    return b"{" + b",".join(parts) + b"}"
