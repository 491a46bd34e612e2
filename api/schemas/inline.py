"""An inline request: what to compact comes with it, and no session is stored under a producer's name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from api.schemas.compactions import Asked
from api.schemas.fields import Name, Text
from api.schemas.sessions import RequestFields, SettingsFields, System, Tools

MessagesFormat = Literal["auto", "anthropic_messages", "openai_chat", "claude_code"]

_MESSAGE: dict[str, Any] = {"type": "object", "additionalProperties": True}
_INLINE: dict[str, Any] = {
    "model": "claude-haiku-4-5",
    "system": "You are a careful engineer.",
    "messages": [
        {"role": "user", "content": "Please make the tests pass."},
        {"role": "assistant", "content": [{"type": "text", "text": "I begin with the failing one."}]},
    ],
    "metadata": {"asked_by": "deploy-bot"},
}


class InlineFields(Asked):
    """An inline request without its messages: those are cut out as bytes."""

    model: Name
    system: System = None
    tools: Tools = None
    request: RequestFields = None
    settings: SettingsFields = None
    query_source: Annotated[Name, Text] | None = None
    format: MessagesFormat = Field(
        default="auto",
        description="auto tells by the messages: of the Messages API with any envelope fields, an OpenAI chat (its "
        "system and developer messages join `system`, its function definitions may stand in `tools`), or the rows of "
        "a Claude Code log",
    )


class InlineRequest(InlineFields):
    """One request to compact the messages that come with it. Nothing of them is kept longer than the result."""

    model_config = ConfigDict(json_schema_extra={"examples": [_INLINE]})

    messages: list[Annotated[Any, WithJsonSchema(_MESSAGE)]] = Field(min_length=1, max_length=10_000)
