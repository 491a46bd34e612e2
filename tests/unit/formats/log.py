"""Writes small Claude Code logs for tests, row by row, each the child of the one before unless told otherwise."""

from __future__ import annotations

import io
import json

from compaction.core.jsonbytes import Json

SESSION = "0b5e7f0a-1111-4222-8333-444455556666"
MODEL = "claude-sonnet-4-5"


class Log:
    """A log under construction. Every method that adds a row gives its uuid."""

    def __init__(self, session: str | None = SESSION) -> None:
        self.session = session
        self.lines: list[bytes] = []
        self.last: str | None = None
        self.count = 0

    def row(self, kind: str, **fields: Json) -> str:
        self.count += 1
        row = {
            "parentUuid": self.last,
            "isSidechain": False,
            "sessionId": self.session,
            "type": kind,
            "uuid": f"row-{self.count}",
            "timestamp": f"2026-05-01T10:00:{self.count % 60:02d}.000Z",
        } | fields
        self.lines.append(encoded(row))
        self.last = str(row["uuid"])
        return self.last

    def user(self, content: Json = "Please look at the cash book.", **fields: Json) -> str:
        return self.row("user", message={"role": "user", "content": content}, **fields)

    def assistant(
        self, content: Json = "I have looked.", *, message: dict[str, Json] | None = None, **fields: Json
    ) -> str:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        inner = {"id": f"msg_{self.count + 1}", "role": "assistant", "model": MODEL, "content": blocks} | (
            message or {}
        )
        return self.row("assistant", message=inner, **fields)

    def call(self, call: str, *, message_id: str, **fields: Json) -> str:
        block = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": f"{call}.py"}}
        return self.assistant([block], message={"id": message_id}, **fields)

    def result(self, call: str, content: Json = "12 lines", **fields: Json) -> str:
        return self.user([{"type": "tool_result", "tool_use_id": call, "content": content}], **fields)

    def boundary(self, **fields: Json) -> str:
        told = {
            "subtype": "compact_boundary",
            "content": "Compacted here",
            "parentUuid": None,
            "logicalParentUuid": self.last,
            "compactMetadata": {"trigger": "auto", "preTokens": 160_000},
        }
        return self.row("system", **(told | fields))

    def line(self, data: bytes) -> None:
        self.lines.append(data)

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def file(self) -> io.BytesIO:
        return io.BytesIO(self.data)


def encoded(row: dict[str, Json]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
