"""Rows of a Claude Code session log: the envelope, the chain of parents, ids and time stamps."""

from __future__ import annotations

import base64
import random
import string
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from compaction.cli.sample.tools import ROOT
from compaction.core.messages import Usage

Row = dict[str, Any]
MODEL = "claude-haiku-4-5"
VERSION = "2.1.40"  # of the client whose rows these look like
BRANCH = "delivery-attempts"
_LETTERS = string.ascii_letters + string.digits
SIGNATURE_BYTES = 180  # of a thinking block; random, so it must never be sent to the real API


class Rows:
    """Makes rows, each the child of the one before unless told otherwise."""

    def __init__(self, rng: random.Random, started_at: datetime) -> None:
        self._rng = rng
        self._started_at = started_at
        self.elapsed_seconds = 0.0
        self.session_id = self.uuid()
        self.last_uuid: str | None = None

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.elapsed_seconds += seconds

    def uuid(self) -> str:
        """A fresh random uuid."""
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def name(self, prefix: str) -> str:
        """A fresh id as the API makes them."""
        return f"{prefix}_01" + "".join(self._rng.choices(_LETTERS, k=22))

    def signature(self) -> str:
        """What stands where the API signs its thinking."""
        return base64.b64encode(self._rng.randbytes(SIGNATURE_BYTES)).decode("ascii")

    def now(self) -> str:
        """The time as the client writes it."""
        moment = self._started_at + timedelta(seconds=self.elapsed_seconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"

    def user(self, content: str | list[Row], **fields: object) -> Row:
        """A user row."""
        return self._chained({"type": "user", "message": {"role": "user", "content": content}, **fields})

    def result(self, block: Row, *, source_uuid: str, kept: object) -> Row:
        """The row of a tool result, a child of the row that called the tool."""
        self.last_uuid = source_uuid
        return self.user([block], toolUseResult=kept, sourceToolAssistantUUID=source_uuid)

    def fragment(self, block: Row, message: Mapping[str, Any], usage: Usage, output_tokens: int) -> Row:
        """One content block of a response; `message` has its id and request id."""
        body = {
            "model": MODEL,
            "id": message["id"],
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage.to_dict(), "output_tokens": output_tokens, "service_tier": "standard"},
        }
        return self._chained({"type": "assistant", "message": body, "requestId": message["request_id"]})

    def system(self, subtype: str, **fields: object) -> Row:
        """A system row, part of the chain."""
        return self._chained({"type": "system", "subtype": subtype, "isMeta": False, **fields})

    def progress(self, data: Row, *, tool_use_id: str, chained: bool = False) -> Row:
        """A row about something that runs; most are leaves of the chain."""
        before = self.last_uuid
        row = self._chained(
            {"type": "progress", "data": data, "toolUseID": tool_use_id, "parentToolUseID": tool_use_id}
        )
        if not chained:
            self.last_uuid = before
        return row

    def snapshot(self, message_uuid: str) -> Row:
        """The client's note of which files it could restore; outside of the chain."""
        inner = {"messageId": message_uuid, "trackedFileBackups": {}, "timestamp": self.now()}
        return {
            "type": "file-history-snapshot",
            "messageId": message_uuid,
            "snapshot": inner,
            "isSnapshotUpdate": False,
        }

    def _chained(self, fields: Row) -> Row:
        row = {
            "parentUuid": self.last_uuid,
            "isSidechain": False,
            "userType": "external",
            "cwd": ROOT,
            "sessionId": self.session_id,
            "version": VERSION,
            "gitBranch": BRANCH,
            **fields,
            "uuid": self.uuid(),
            "timestamp": self.now(),
        }
        self.last_uuid = row["uuid"]
        return row
