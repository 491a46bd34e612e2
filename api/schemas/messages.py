"""Messages in and out. Their bodies pass through as the bytes they are, so these shapes are for the document alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from api.schemas.fields import MAX_SEQ, Answer, Cursor, Query, Request

MAX_MESSAGES = 1_000  # in one page of the full view, when pages are asked for


class Envelope(Answer):
    """A message: role and content as the Messages API knows them, with what the producer knows about it beside them."""

    uuid: str | None = None
    parent_uuid: str | None = None
    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, Any]]
    api_message_id: str | None = None
    created_at: str | None = None
    usage: dict[str, Any] | None = None
    model: str | None = None
    is_meta: bool = False
    is_sidechain: bool = False
    partial: bool = False
    is_compact_summary: bool = False
    metadata: dict[str, Any] | None = None


class AppendRequest(Request):
    """A batch of messages, stored all or not at all. A uuid that is stored already is passed over."""

    messages: list[Envelope]
    expected_seq: Annotated[int, Field(ge=0, le=MAX_SEQ)] | None = None


class AppendOptions(Request):
    """The batch's own fields, without the messages: those are cut out as bytes."""

    expected_seq: Annotated[int, Field(ge=0, le=MAX_SEQ)] | None = None


class Appended(Answer):
    """What became of the batch."""

    session_id: str
    head_seq: int
    appended: int
    duplicates: int
    replaced: int


class MessagePage(Answer):
    """Messages, oldest first. In the full view each stands exactly as it was stored."""

    data: list[Envelope]
    next_cursor: str | None
    has_more: bool


class ChatMessage(Answer):
    """A message of a chat completion."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None


class ChatPage(Answer):
    """The live view as a chat completion takes it, the system prompt first."""

    data: list[ChatMessage]
    next_cursor: str | None
    has_more: bool


class MessageQuery(Query):
    """Which messages to read."""

    view: Literal["live", "full", "api"] = Field(
        default="live", description="live: from the last boundary on; full: everything; api: ready to send"
    )
    format: Literal["anthropic", "openai"] = Field(
        default="anthropic",
        description="For whom view=api makes the messages ready: openai puts the system prompt first",
    )
    limit: Annotated[int, Field(ge=1, le=MAX_MESSAGES)] | None = Field(None, description="Full view only; absent: all")
    cursor: Cursor = None


class Imported(Answer):
    """What became of a transcript: the session, what was added, and the report about the file."""

    session_id: str
    head_seq: int
    appended: int
    duplicates: int
    report: dict[str, Any]
