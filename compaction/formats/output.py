"""A result in the formats of those who go on with it; `read` of this package takes each of them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import msgspec

from compaction.core import jsonbytes, wire
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.formats.chat_output import chat_messages, chat_tools
from compaction.formats.log_output import LogPlace, log_rows

OutputFormat = Literal["anthropic", "openai", "claude_code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A result's messages, and what the session says beside them.

    `parameters` are the exact JSON bytes of the session's system and tools, as far as it has them. `last_uuid` names
    the last message that the result covers.
    """

    session_id: str
    model: str
    messages: tuple[Message, ...] = field(repr=False)  # the boundary first
    parameters: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    context_management: Json = None
    last_uuid: str | None = None
    created_at: datetime

    def written(self, name: OutputFormat) -> bytes:
        """The bytes of the format: JSON, for claude_code a JSON object in each line."""
        match name:
            case "anthropic":
                return jsonbytes.encode(self._request())
            case "openai":
                return jsonbytes.encode(self._chat())
            case "claude_code":
                place = LogPlace(session_id=self.session_id, last_uuid=self.last_uuid, created_at=self.created_at)
                return b"".join(log_rows(self.messages, place, model=self.model))

    def _request(self) -> dict[str, Json]:
        """The members of a Messages API request that a conversation decides; system and tools as they were given."""
        given = {name: msgspec.Raw(raw) for name, raw in self.parameters.items() if name in {"system", "tools"}}
        request: dict[str, Json] = {"model": self.model, **given, "messages": wire.api_messages(self.messages)}
        if self.context_management is not None:
            request["context_management"] = self.context_management
        return request

    def _chat(self) -> dict[str, Json]:
        """The same for chat completions."""
        tools = chat_tools(self._parameter("tools"))
        messages = chat_messages(wire.api_messages(self.messages), self._parameter("system"))
        return {"model": self.model, **({"tools": tools} if tools else {}), "messages": messages}

    def _parameter(self, name: str) -> Json:
        raw = self.parameters.get(name)
        return None if raw is None else jsonbytes.decode(raw)
