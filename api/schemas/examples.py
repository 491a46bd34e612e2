"""Examples of answers for the document, by the name of their schema; a page of a list is made from its item's."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from api.schemas.fields import Answer

Example = dict[str, Any]

JOB_ID = "01a22e26-5941-7380-aaa5-3156a0f6644b"
SESSION_ID = "agent-7:2026-11-30"
AT = "2026-11-30T20:29:54.895573Z"
_MESSAGE: Example = {"uuid": "m1", "role": "user", "content": "Please make the tests pass."}
_BOUNDARY: Example = {
    "uuid": "5f0f2c1e-8f52-4c8e-9d4f-0b7b4f1f2a10",
    "role": "system",
    "content": "",
    "metadata": {"kind": "compact_boundary", "trigger": "manual", "strategy": "fresh", "pre_tokens": 170_896},
}
_SUMMARY: Example = {"uuid": "s1", "role": "user", "content": "This session goes on from …", "is_compact_summary": True}
_API_KEY: Example = {"public_id": "k3v9x2ab", "scopes": ["sessions:write", "jobs:write", "read"], "expires_at": None}


EXAMPLES: dict[str, Example] = {
    "StoredSession": {
        "id": SESSION_ID,
        "model": "claude-haiku-4-5",
        "query_source": "main",
        "settings": {"auto_compact_enabled": True},
        "head_seq": 277,
        "live_job_id": JOB_ID,
        "created_at": AT,
        "updated_at": AT,
    },
    "Breaker": {
        "session_id": SESSION_ID,
        "state": "open",
        "failures": 3,
        "opened_at": AT,
        "last_error_code": "no_summary",
    },
    "Erased": {
        "session_id": SESSION_ID,
        "messages": 277,
        "jobs": 3,
        "cancelled_jobs": 0,
        "results": 2,
        "deliveries": 3,
        "kept_answers": 3,
    },
    "Envelope": _MESSAGE,
    "ChatMessage": {"role": "user", "content": "Please make the tests pass."},
    "Appended": {"session_id": SESSION_ID, "head_seq": 277, "appended": 2, "duplicates": 0, "replaced": 0},
    "Imported": {
        "session_id": SESSION_ID,
        "head_seq": 277,
        "appended": 277,
        "duplicates": 0,
        "report": {"format": "claude_code", "rows": 301, "messages": 277},
    },
    "Event": {"id": 4711, "at": AT, "type": "tengu_compact", "data": {"pre_tokens": 170_896, "post_tokens": 9_120}},
    "Result": {
        "job_id": JOB_ID,
        "session_id": SESSION_ID,
        "strategy": "fresh",
        "boundary": _BOUNDARY,
        "messages": [_BOUNDARY, _SUMMARY],
        "api_messages": [{"role": "user", "content": "This session goes on from …"}],
        "attachments": [],
        "pre_tokens": 170_896,
        "post_tokens": 9_120,
        "usage": {
            "input_tokens": 168_402,
            "output_tokens": 3_871,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        },
        "cost_usd": 0.187757,
        "ptl_attempts": 0,
        "dropped": {"rounds": 0, "messages": 0, "tokens": 0},
        "context_management": None,
        "covers_through_seq": 277,
        "prefix_hash": "c228956305fc8c3ba5a8401b8fa386996741d5ed36e71d1e01b1a0196c30b24a",
        "degraded": False,
        "hook_results": [],
        "created_at": AT,
    },
    "Context": {
        "session_id": SESSION_ID,
        "window": 200_000,
        "tokens": 170_896,
        "anchored": True,
        "percent_of_window": 85.4,
        "estimated_tokens": 151_230,
        "kinds": [{"kind": "results", "tokens": 118_402, "percent": 78.3}],
        "roles": {"user": {"messages": 139, "tokens": 121_077}},
        "tools": [
            {
                "name": "Read",
                "requests": 40,
                "request_tokens": 2_113,
                "results": 40,
                "result_tokens": 96_540,
                "tokens": 98_653,
                "percent": 65.2,
            }
        ],
        "repeated_reads": [{"path": "billing/invoices.py", "reads": 3, "wasted_tokens": 4_820}],
        "wasted_tokens": 4_820,
    },
    "ApiKey": {"key": "ck_k3v9x2ab_…", "tenant": "agents", **_API_KEY},
    "StoredApiKey": {**_API_KEY, "created_at": AT, "last_used_at": AT, "revoked_at": None},
    "Hook": {
        "id": "01a22ed6-3bec-7077-b34f-cd1e04fb75d1",
        "event": "pre_compact",
        "url": "https://agents.example.com/hooks/compaction",
        "timeout_s": 5.0,
        "enabled": True,
        "created_at": AT,
    },
    "Provider": {
        "name": "claude-3f9a",
        "state": "paused",
        "reason": "billing_error",
        "trips": 1,
        "failed_probes": 2,
        "next_probe_at": AT,
        "paused_at": AT,
        "changed_at": AT,
    },
}


def add_examples(schemas: dict[str, Example]) -> None:
    """Gives each schema of the document its example: FastAPI's own writing of it leaves out what is null."""
    known = _written(Answer) | EXAMPLES
    for name, schema in schemas.items():
        if name in known:
            schema["examples"] = [known[name]]
    for schema in schemas.values():
        item = _item(schema)
        if "examples" not in schema and "examples" in schemas.get(item, {}):
            page: Example = {"data": schemas[item]["examples"][:1]}
            if "next_cursor" in schema["properties"]:
                page |= {"next_cursor": None, "has_more": False}
            schema["examples"] = [page]


def add_named_examples(paths: Example, schemas: dict[str, Example]) -> None:
    """Gives each named example of an answer the value that its schema has."""
    answers = (answer for path in paths.values() for call in path.values() for answer in call["responses"].values())
    for media in (media for answer in answers for media in answer.get("content", {}).values()):
        for example in media.get("examples", {}).values():
            example["value"] = schemas[example["summary"]]["examples"][0]


def _written(parent: type[BaseModel]) -> dict[str, Example]:
    """The examples that stand beside their models."""
    found: dict[str, Example] = {}
    for model in parent.__subclasses__():
        extra = model.__dict__.get("model_config", {}).get("json_schema_extra")
        if isinstance(extra, dict):
            found[model.__name__] = extra["examples"][0]
        found |= _written(model)
    return found


def _item(schema: Example) -> str:
    """The name of the schema that a list's items have; "" for what is no list."""
    reference: str = schema.get("properties", {}).get("data", {}).get("items", {}).get("$ref", "")
    return reference.rsplit("/", 1)[-1]
