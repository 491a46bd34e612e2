"""What the Messages API takes: block types, the fields of each in a request, who may say them, and the shape of ids.

The table is read from the request types of anthropic 2.14 (`types/beta/*_param.py`); fields that only answers have are
not in it. A type that is not in the table is newer than we are: it passes unchanged.
"""

from __future__ import annotations

import re
from functools import lru_cache

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

_MARKED = frozenset({"type", "cache_control"})  # almost every block can carry a cache breakpoint
_RESULT = _MARKED | {"tool_use_id", "content"}

REQUEST_FIELDS: dict[str, frozenset[str]] = {
    "text": _MARKED | {"text", "citations"},
    "image": _MARKED | {"source", "transformations"},
    "document": _MARKED | {"source", "title", "context", "citations"},
    "search_result": _MARKED | {"source", "title", "content", "citations"},
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": _MARKED | {"id", "name", "input", "caller", "toolset_name"},
    "tool_result": _RESULT | {"is_error", "toolset_name"},
    "server_tool_use": _MARKED | {"id", "name", "input", "caller"},
    "web_search_tool_result": _RESULT | {"caller"},
    "web_fetch_tool_result": _RESULT | {"caller"},
    "advisor_tool_result": _RESULT,
    "code_execution_tool_result": _RESULT,
    "bash_code_execution_tool_result": _RESULT,
    "text_editor_code_execution_tool_result": _RESULT,
    "tool_search_tool_result": _RESULT,
    "mcp_tool_use": _MARKED | {"id", "name", "input", "server_name"},
    "mcp_tool_result": _RESULT | {"is_error"},
    "mcp_tool_listing": frozenset({"type", "mcp_server_name", "tools"}),
    "container_upload": _MARKED | {"file_id"},
    "compaction": _MARKED | {"content", "encrypted_content", "signature", "tool_changes"},
    "fallback": frozenset({"type", "from", "to", "trigger"}),
    "tool_addition": _MARKED | {"tool"},
    "tool_removal": _MARKED | {"tool"},
    "tool_reference": _MARKED | {"tool_name"},
    "browser_state": _MARKED | {"tabs", "state_changes"},
}
NOT_NULL = frozenset({"is_error", "citations"})  # optional, but never null (facts/anthropic.md §1)
CITATION_ANSWER_FIELDS = frozenset({"file_id"})  # the one field that citations have in answers alone

SIGNED = frozenset({"thinking", "redacted_thinking"})
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
CALLS = SERVER_CALLS | {"tool_use"}
MEDIA = frozenset({"image", "document"})
IN_RESULTS = MEDIA | {"text", "search_result", "tool_reference", "browser_state"}  # what a tool_result may hold

TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")  # facts/anthropic.md §8
SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")  # the same
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")  # the pattern of names in `tools`


def is_server_result(kind: str) -> bool:
    """Whether blocks of this type answer a server tool; new server tools follow the same naming."""
    return kind.endswith("tool_result") and kind != "tool_result"


@lru_cache(maxsize=256)  # more types than any session has
def speaker(kind: str) -> str | None:
    """The one role whose messages may hold blocks of this type, None when both may."""
    if kind in CALLS or kind in SIGNED or is_server_result(kind):
        return "assistant"
    return "user" if kind == "tool_result" or kind in MEDIA else None


def ident(value: Json) -> str:
    """A call's id as a key to pair by. Ids that are no strings are paired too, by their JSON text."""
    return value if isinstance(value, str) else jsonbytes.encode(value).decode("utf-8")
