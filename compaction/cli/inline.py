"""A file with a conversation, as `compact --inline` sends it: nothing of it is stored as a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

NO_SESSION = "(inline)"  # shown in place of a session's id, which holds no such signs
_MEMBERS = ("model", "system", "tools")  # of a file that is a whole request


def conversation_in(path: Path, model: str | None) -> dict[str, Any]:
    """The fields of an inline job in the file, which is a list of messages, a request with one, or JSON lines.

    `model` goes before the one in the file. Raises typer.BadParameter when there is no model or nothing to send, and
    OSError.
    """
    value = _value(path.read_bytes(), path)
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        fields = {name: value[name] for name in _MEMBERS if value.get(name) is not None}
        fields["messages"] = value["messages"]
    else:
        fields = {"messages": value if isinstance(value, list) else [value]}
    if model is not None:
        fields["model"] = model
    if not isinstance(fields.get("model"), str):
        raise typer.BadParameter(f"{path.name} names no model. Say with --model which one the conversation is with.")
    return fields


def _value(data: bytes, path: Path) -> Json:
    """The JSON document in `data`, or the list of its lines."""
    try:
        return jsonbytes.decode(data)
    except ValueError:
        lines = [line for line in data.splitlines() if line.strip()]
    try:
        found = [jsonbytes.decode(line) for line in lines]
    except ValueError:
        found = []
    if not found:
        raise typer.BadParameter(
            f"{path.name} is neither JSON nor JSON lines. `compactd import` reads damaged files."
        ) from None
    return found
