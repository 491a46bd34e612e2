"""Short ways to write the messages and blocks of a test."""

from __future__ import annotations

from typing import Any

from compaction.core.messages import Message, Usage

Block = dict[str, Any]
MARK = {"type": "ephemeral"}
PICTURE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


def text(words: str, **more: Any) -> Block:  # noqa: ANN401 - any further field
    return {"type": "text", "text": words, **more}


def use(ident: Any, name: Any = "Read", inputs: Any = None, **more: Any) -> Block:  # noqa: ANN401 - odd ones too
    return {"type": "tool_use", "id": ident, "name": name, "input": {} if inputs is None else inputs, **more}


def result(ident: Any, content: Any = "ok", **more: Any) -> Block:  # noqa: ANN401 - odd ones too
    return {"type": "tool_result", "tool_use_id": ident, "content": content, **more}


def image(**source: str) -> Block:
    return {"type": "image", "source": {**PICTURE, **source}}


def thinking(words: str = "hm", signature: str = "SIG") -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def user(*content: Block | str, **fields: Any) -> Message:  # noqa: ANN401 - the envelope's fields
    return _message("user", content, fields)


def assistant(*content: Block | str, **fields: Any) -> Message:  # noqa: ANN401 - the envelope's fields
    return _message("assistant", content, fields)


def usage(prompt: int, output: int = 10) -> Usage:
    """Usage as the API gives it with a warm cache: most of the prompt is a cache read."""
    return Usage(input_tokens=prompt // 10, output_tokens=output, cache_read_input_tokens=prompt - prompt // 10)


def _message(role: Any, content: tuple[Block | str, ...], fields: dict[str, Any]) -> Message:  # noqa: ANN401 - a literal
    if len(content) == 1 and isinstance(content[0], str):
        return Message(role=role, content=content[0], **fields)
    return Message(role=role, content=[text(item) if isinstance(item, str) else item for item in content], **fields)
