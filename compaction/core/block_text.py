"""The plain text of content blocks: for the rendered transcript, and for blocks that cannot be sent as what they are.

Media become markers, encrypted fields are left out, encoded runs inside JSON are shortened; text is kept whole.
"""

from __future__ import annotations

from compaction.core import jsonbytes
from compaction.core.encoded import shorten_encoded
from compaction.core.fields import CALLS, MEDIA, SIGNED
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block

MAX_ADDRESS_CHARS = 200  # of a media URL; a data: URL is the data itself
KIBIBYTE = 1024


def block_text(block: Block) -> str:
    """What the block says, labelled where it is more than text; empty for thinking and blocks without content."""
    kind = block.get("type")
    if kind == "text":
        return content_text(block.get("text"))
    if kind in SIGNED:
        return ""
    if kind in MEDIA:
        return media_text(block)
    if kind in CALLS:
        return f"[Tool call {name_of(block)}] {input_text(block)}"
    text = content_text(block.get("content")) if "content" in block else json_text(_without_type(block))
    failed = " (error)" if block.get("is_error") else ""
    return f"[{str(kind).replace('_', ' ')}{failed}] {text}" if text else ""


def content_text(content: Json, *, media: bool = True) -> str:
    """A result's or document's content as text: strings as they are, blocks one per line, anything else as JSON.

    With `media` off, image and document blocks are told as JSON: documents inside documents end there.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return _item_text(content, media=media)
    return "\n".join(text for item in content if (text := _item_text(item, media=media)).strip())


def media_text(block: Block) -> str:
    """A marker with the kind, name and size of an image or document; a text document is its text."""
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    title = block.get("title")
    name = f' "{_line(title)}"' if isinstance(title, str) and title.strip() else ""
    if block["type"] == "document" and source.get("type") in ("text", "content"):
        inner = source.get("data") if source["type"] == "text" else source.get("content")
        return f"[document{name}]\n{content_text(inner, media=False)}"
    facts = ", ".join(_source_facts(source))
    return f"[{block['type']}{name} omitted{': ' if facts else ''}{facts}]"


def input_text(block: Block) -> str:
    """A call's input as compact JSON; an input that is a string already stays as it is."""
    value = block.get("input")
    return value if isinstance(value, str) else json_text(value if value is not None else {})


def name_of(block: Block) -> str:
    """A call's tool name on one line."""
    name = block.get("name")
    return (_line(name) if isinstance(name, str) else "") or "unknown"


def json_text(value: Json) -> str:
    """`value` as compact JSON with long encoded runs shortened."""
    return shorten_encoded(jsonbytes.encode(value).decode("utf-8"))


def _item_text(item: Json, *, media: bool) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, dict):
        return json_text(item)
    kind = item.get("type")
    if isinstance(item.get("text"), str):
        return str(item["text"])
    if media and kind in MEDIA:
        return media_text(item)
    return "" if kind in SIGNED else json_text(_without_encrypted(item))


def _source_facts(source: dict[str, Json]) -> list[str]:
    named = (source.get("media_type"), source.get("file_id"))
    facts = [_line(name) for name in named if isinstance(name, str)]
    url, data = source.get("url"), source.get("data")
    if isinstance(url, str) and not url.startswith("data:"):
        facts.append(_line(url))
    if isinstance(data, str):
        size = len(data) * 3 // 4  # bytes behind base64
        facts.append(f"{size // KIBIBYTE:,} KB" if size >= KIBIBYTE else f"{size} bytes")
    return facts


def _line(text: str) -> str:
    return " ".join(text.split())[:MAX_ADDRESS_CHARS]


def _without_type(block: Block) -> dict[str, Json]:
    return {key: value for key, value in block.items() if key != "type"}


def _without_encrypted(item: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in item.items() if not key.startswith("encrypted_")}
