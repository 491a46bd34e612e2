"""A message as pages show it: block by block as plain text, cut where reading ends. Nothing of it is ever markup."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Message

MAX_CHARS = 4_000  # of one block: two screens; the API gives the whole
MAX_BLOCKS = 50  # of one message
HIDDEN = {"thinking", "redacted_thinking"}  # shown as sizes: signed for the model, not written for people


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block: what it is, its text, and how many characters are not shown."""

    kind: str
    text: str
    cut: int = 0


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message. `more` blocks are not shown."""

    seq: int | None
    role: str
    marks: tuple[str, ...]
    created_at: str | None
    blocks: tuple[BlockView, ...]
    more: int

    @classmethod
    def of(cls, message: Message) -> MessageView:
        """The view of a message."""
        named = {
            "boundary": message.is_boundary,
            "summary": message.is_compact_summary,
            "meta": message.is_meta,
            "sub-agent": message.is_sidechain,
            "partial": message.partial,
        }
        blocks = message.blocks()
        return cls(
            seq=message.seq,
            role=message.role,
            marks=tuple(name for name, is_so in named.items() if is_so),
            created_at=message.created_at,
            blocks=tuple(map(_block, blocks[:MAX_BLOCKS])),
            more=max(0, len(blocks) - MAX_BLOCKS),
        )


def text_of(message: Message) -> str:
    """The text of a message of ours, whole."""
    return "\n\n".join(str(block.get("text", "")) for block in message.blocks() if block.get("type") == "text")


def _block(block: Block) -> BlockView:
    kind = str(block.get("type", "unknown"))
    if kind in HIDDEN:
        return BlockView("thinking", f"{len(jsonbytes.encode(block)):,} bytes of thinking")
    if kind == "text":
        return _cut("text", str(block.get("text", "")))
    if kind.endswith("tool_use"):
        return _cut(f"calls {block.get('name', 'a tool')}", _told(block.get("input")))
    if kind.endswith("tool_result"):
        return _cut("error" if block.get("is_error") else "result", _content(block.get("content")))
    return BlockView(kind, f"{len(jsonbytes.encode(block)):,} bytes")


def _content(content: Json) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return _told(content)
    return "\n".join(
        str(part["text"]) if isinstance(part, dict) and "text" in part else f"[{_kind(part)}]" for part in content
    )


def _kind(part: Json) -> str:
    return str(part.get("type", "part")) if isinstance(part, dict) else "part"


def _told(value: Json) -> str:
    return value if isinstance(value, str) else jsonbytes.encode(value).decode("utf-8", errors="replace")


def _cut(kind: str, text: str) -> BlockView:
    return BlockView(kind[:100], text[:MAX_CHARS], max(0, len(text) - MAX_CHARS))
