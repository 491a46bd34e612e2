"""Content of OpenAI chat messages as content blocks of the Messages API.

What the Messages API cannot hold (sound, files, pictures of other kinds) becomes a plain text that says what
stood there.
"""

from __future__ import annotations

import re
from typing import Any

from compaction.core.fields import REQUEST_FIELDS
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Content

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
PART_TYPES = frozenset({"image_url", "input_audio", "audio", "file", "refusal"})  # types that the Messages API has not
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})  # facts/anthropic.md: what it takes
LOST = "[{what}: not carried over]"
MAX_NAME_CHARS = 100  # of a file's name or a type in a marker
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+=-]+)*;base64,")
_SPACE = re.compile(r"\s+")


def content_of(content: Json) -> Content:
    """The content of one message: a string as it is, parts as blocks, nothing as no blocks."""
    if isinstance(content, str):
        return content
    return [block_of(part) for part in content or ()]


def block_of(part: Json) -> Block:
    """One content part as a block. A block of the Messages API passes unchanged."""
    if isinstance(part, str):
        return _text(part)
    kind = part["type"]
    text = part.get("text") if kind in TEXT_PARTS else part.get("refusal") if kind == "refusal" else None
    if isinstance(text, str):
        return _text(text)
    if kind == "image_url":
        return _image(part.get("image_url"))
    if kind in {"input_audio", "audio"}:
        return _marker("audio", _member(part.get(kind), "format"))
    if kind == "file":
        return _marker("file", _member(part.get("file"), "filename") or _member(part.get("file"), "file_id"))
    return part if kind in REQUEST_FIELDS else _marker("content", kind)


def _image(source: Json) -> Block:
    url = source.get("url") if isinstance(source, dict) else source
    if not isinstance(url, str):
        return _marker("image", None)
    if url.startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    head = _DATA_URL.match(url)
    media = head[1].lower().replace("image/jpg", "image/jpeg") if head else None
    if head is None or media not in IMAGE_TYPES:
        return _marker("image", media)
    data = _SPACE.sub("", url[head.end() :])
    return {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}


def _marker(what: str, name: str | None) -> Block:
    return _text(LOST.format(what=f"{what} {name[:MAX_NAME_CHARS]}" if name else what))


def _member(value: Json, key: str) -> str | None:
    found: Any = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found.strip() else None


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
