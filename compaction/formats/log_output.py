"""A result as rows of a Claude Code log: appended to the session's file, they are its live view from then on.

The boundary row has no parent and names the file's last message as its logical one; the summary row hangs on the
boundary, and every further row on the one before. Messages that the compaction kept stand in the file already, so they
come under new names: a loader takes the first of two rows with one uuid. Each row is a millisecond younger than the one
before it, whatever the message's own time was: Claude Code goes on from the row with the newest time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.core.open_round import sendable

VERSION = "2.1.25"  # the newest Claude Code whose boundary rows we have seen; loaders read the shape of a row by it
NOTICE = "Conversation compacted"  # what Claude Code shows at a boundary
AGENT_MARK = ":agent-"  # stands in the session ids that the importer makes of sub-agents' files
_COPIES = uuid.UUID("0f9a1c5e-7b0d-5a53-9a57-2f3d0e6c8b11")  # namespace of the names of copied messages
_OWN_TRIGGERS = frozenset({"auto", "reactive"})  # without anybody's asking; the log knows auto and manual alone


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """Where the rows go: the session, the uuid of the last message that the result covers, and when it was made."""

    session_id: str
    last_uuid: str | None
    created_at: datetime


def log_rows(messages: Sequence[Message], place: LogPlace, *, model: str) -> Iterator[bytes]:
    """The rows of a result's messages, boundary first, each with its line feed. `model` is for answers without one.

    An open call comes last, as in what is sent: its result can be appended right behind it.
    """
    if not messages:
        return
    writer = _Writer(place, model, str(messages[0].uuid))
    for message in sendable(messages):
        yield jsonbytes.encode(writer.row(message)) + b"\n"


class _Writer:
    """Writes one row after the other."""

    def __init__(self, place: LogPlace, model: str, boundary_uuid: str) -> None:
        self._place = place
        self._model = model
        self._boundary = boundary_uuid
        self._last: str | None = None
        self._count = 0

    def row(self, message: Message) -> dict[str, Json]:
        self._count += 1
        is_summary = message.is_compact_summary and self._last == self._boundary  # an earlier one was kept
        own = message.is_boundary or is_summary
        name = message.uuid if own and message.uuid is not None else self._copy(message.uuid or f"/{self._count}")
        if message.role == "system":
            row = self._boundary_row(message)
        else:
            row = {"type": message.role, "message": self._message(message)} | self._flags(
                message, is_summary=is_summary
            )
        common = {
            "parentUuid": self._last,
            "isSidechain": False,
            "userType": "external",
            "cwd": "",
            "sessionId": self._place.session_id,
            "version": VERSION,
            "gitBranch": "",
        }
        self._last = name
        return common | self._thread() | row | {"uuid": name, "timestamp": self._time()}

    def _time(self) -> str:
        """The time of the present row, as Claude Code writes it."""
        at = self._place.created_at.astimezone(UTC) + timedelta(milliseconds=self._count - 1)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _thread(self) -> dict[str, Json]:
        """A sub-agent's file has rows beside the main thread only, under its parent's session."""
        session, _, agent = self._place.session_id.partition(AGENT_MARK)
        return {"isSidechain": True, "sessionId": session, "agentId": agent} if session and agent else {}

    def _boundary_row(self, message: Message) -> dict[str, Json]:
        facts = message.metadata or {}
        trigger = "auto" if facts.get("trigger") in _OWN_TRIGGERS else "manual"
        return {
            "parentUuid": None,
            "logicalParentUuid": self._place.last_uuid,
            "type": "system",
            "subtype": "compact_boundary",
            "content": NOTICE,
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": trigger, "preTokens": facts.get("pre_tokens", 0)},
        }

    def _message(self, message: Message) -> dict[str, Json]:
        """The inner message. Without the usage it had: that counted a conversation which is no more."""
        if message.role == "user":
            return {"role": "user", "content": message.content}
        return {
            "id": "msg_" + self._copy(message.api_message_id or message.uuid or f"/{self._count}").replace("-", ""),
            "type": "message",
            "role": "assistant",
            "model": message.model or self._model,
            "content": message.content,
        }

    def _copy(self, name: str) -> str:
        return str(uuid.uuid5(_COPIES, f"{self._boundary}/{name}"))

    def _flags(self, message: Message, *, is_summary: bool) -> dict[str, Json]:
        if is_summary:
            return {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        denied = (
            message.role == "user" and self._last == self._boundary
        )  # a text right behind a boundary passes for one
        return ({"isMeta": True} if message.is_meta else {}) | ({"isCompactSummary": False} if denied else {})
