"""Making messages smaller without dropping any: long texts lose their middle, media become a short marker.

This is for messages on their way into a request; what is stored never changes, and the inputs are left as they are. The
place of a cut is visible, and the marker there counts the characters that are missing, also when a text is cut twice.
Tool results go first, then the assistant's own words and calls, then the user's, an earlier summary last. Texts under
one of these heads are cut down to one common size, so the largest lose most and the modest nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

from compaction.core import jsonbytes
from compaction.core.block_text import media_text
from compaction.core.fields import CALLS, MEDIA, SIGNED
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Message
from compaction.core.room import Measure

MIN_TEXT_CHARS = 200  # shorter texts are left alone: the marker would eat the gain
KEEP_CHARS = 100  # of a cut text stays at least so much: enough to see what it was
HEAD_PERCENT = (
    60  # of what stays, the share from the start; commands and files say most at their head, errors at the tail
)
FLAT_CHARS = 2_000  # structures of many small values are turned into one text from this size on
MAX_DEPTH = 32  # deeper values are left alone; real tool inputs have five levels
MAX_PASSES = 3  # the weight of half a text is a guess; each pass measures anew
MAX_GRAPHEME_CHARS = (
    32  # the longest emoji families have 11 code points; a run of combining marks is not followed further
)

_MARKER = re.compile(r"\n\[… ([0-9]+) characters left out …\]\n")
_MARKER_CHARS = 48  # the marker with a number of up to 16 digits
_KEPT_KEYS = frozenset({"type", "id", "tool_use_id", "name", "signature", "media_type", "url", "file_id"})

Path = tuple[int | str, ...]


class _Text(NamedTuple):
    """One long text inside a message: where it stands, its size in the unit of the measure, and how late it is cut."""

    message: int
    path: Path  # () when the content itself is the text
    text: str
    weight: int
    tier: int


@dataclass(frozen=True, slots=True)
class Shortened:
    """The messages after the cut, how many of them it changed, and how many characters less they hold."""

    messages: tuple[Message, ...]
    changed: int = 0
    characters: int = 0


def middle_cut(text: str, keep_chars: int) -> str:
    """`text` with about `keep_chars` of its characters and a marker in place of its middle.

    Never cuts inside a character that is made of several code points (emoji, accents, flags, halves of a surrogate
    pair). Returns the text itself when nothing would be gained.
    """
    head = _edge(text, keep_chars * HEAD_PERCENT // 100, -1)
    tail = _edge(text, max(head, len(text) - (keep_chars - head)), +1)
    missing = sum(int(found[1]) - len(found[0]) for found in _MARKER.finditer(text, head, tail)) + tail - head
    cut = f"{text[:head]}\n[… {missing} characters left out …]\n{text[tail:]}"
    return cut if len(cut) < len(text) else text


def without_media(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """The messages with a text marker for each image and document, also in tool results; and how many there were."""
    found = 0
    lighter: list[Message] = []
    for message in messages:
        edits = dict(_media(message.content)) if isinstance(message.content, list) else {}
        found += len(edits)
        lighter.append(replace(message, content=_edited(message.content, edits)) if edits else message)
    return tuple(lighter), found


def shortened(messages: Sequence[Message], excess: int, measure: Measure) -> Shortened:
    """The messages cut in place until they measure at least `excess` less, or as close to that as cutting comes."""
    now = tuple(messages)
    sizes = [measure(message) for message in now]
    goal = sum(sizes) - excess
    for prepared in (_as_they_are, _flattened):
        for turn in range(1 + MAX_PASSES):
            if sum(sizes) <= goal:
                break
            new = _cut_once(now, sum(sizes) - goal, measure) if turn else prepared(now)
            sizes = [size if a is b else measure(b) for size, a, b in zip(sizes, now, new, strict=True)]
            now = new
    changed = [(a, b) for a, b in zip(messages, now, strict=True) if a is not b]
    return Shortened(now, len(changed), max(0, sum(_characters(a) - _characters(b) for a, b in changed)))


def _cut_once(messages: tuple[Message, ...], over: int, measure: Measure) -> tuple[Message, ...]:
    edits: dict[int, dict[Path, str]] = {}
    texts = list(_texts(messages, measure))
    for tier in sorted({text.tier for text in texts}):
        group = [text for text in texts if text.tier == tier]
        level = _level(group, over)
        for text in group:
            if text.weight > level:
                keep = max(KEEP_CHARS, len(text.text) * level // text.weight - _MARKER_CHARS)
                edits.setdefault(text.message, {})[text.path] = middle_cut(text.text, keep)
        over -= _saved(group, level)
        if over <= 0:
            break
    return tuple(
        replace(message, content=_edited(message.content, edits[index])) if index in edits else message
        for index, message in enumerate(messages)
    )


def _level(texts: Sequence[_Text], over: int) -> int:
    """The highest common size that takes `over` from the texts; 0 when even the smallest size does not."""
    low, high = 0, max(text.weight for text in texts)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _saved(texts, middle) >= over else (low, middle - 1)
    return low


def _saved(texts: Sequence[_Text], level: int) -> int:
    return sum(max(0, text.weight - max(level, text.weight * KEEP_CHARS // len(text.text))) for text in texts)


def _texts(messages: Sequence[Message], measure: Measure) -> Iterator[_Text]:
    for index, message in enumerate(messages):
        for path, text in _places(message):
            if len(text) >= MIN_TEXT_CHARS:
                weight = measure(replace(message, content=text)) - measure(replace(message, content=""))
                yield _Text(index, path, text, max(weight, 1), _tier(message, path))


def _tier(message: Message, path: Path) -> int:
    if message.is_compact_summary:
        return 3
    block = message.content[path[0]] if isinstance(message.content, list) and isinstance(path[0], int) else None
    if block is not None and block["type"].endswith("tool_result"):
        return 0
    return 2 if message.role == "user" else 1


def _places(message: Message) -> Iterator[tuple[Path, str]]:
    """Each string of the message that may be cut, with its path into the content."""
    if isinstance(message.content, str):
        yield (), message.content
        return
    for index, block in enumerate(message.content):
        if block["type"] in CALLS:
            yield from _strings(block.get("input"), (index, "input"), frozenset())
        elif block["type"] not in SIGNED:
            yield from _strings(block, (index,), _KEPT_KEYS)


def _strings(root: Json, path: Path, kept_keys: frozenset[str]) -> Iterator[tuple[Path, str]]:
    """The strings inside `root`, without recursion: a hostile input may be nested deep."""
    waiting: list[tuple[Path, Json]] = [(path, root)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict) and len(place) < MAX_DEPTH:
            if kept_keys and value.get("type") in {"base64", *SIGNED}:
                continue
            waiting.extend(((*place, key), child) for key, child in value.items() if key not in kept_keys)
        elif isinstance(value, list) and len(place) < MAX_DEPTH:
            waiting.extend(((*place, index), child) for index, child in enumerate(value))


def _media(content: Sequence[Json], path: Path = ()) -> Iterator[tuple[Path, Block]]:
    for index, block in enumerate(content):
        if not isinstance(block, dict):
            continue
        if block.get("type") in MEDIA:
            yield (*path, index), {"type": "text", "text": media_text(block)}
        elif isinstance(block.get("content"), list) and len(path) < MAX_DEPTH:
            yield from _media(block["content"], (*path, index, "content"))


def _as_they_are(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return messages


def _flattened(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Large structures as one JSON text each, so that they can be cut: ten thousand short strings, a long table."""
    flat: list[Message] = []
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else []
        edits: dict[Path, Json] = {(at,): _flat(block) for at, block in enumerate(blocks) if _is_structure(block)}
        flat.append(replace(message, content=_edited(message.content, edits)) if edits else message)
    return tuple(flat)


def _is_structure(block: Block) -> bool:
    if block["type"] in SIGNED | MEDIA | {"text"}:
        return False
    body = _body(block)
    return not isinstance(body, str) and len(_json(body)) >= FLAT_CHARS


def _body(block: Block) -> Json:
    if block["type"] in CALLS:
        return block.get("input")
    return block.get("content") if block["type"].endswith("tool_result") else block


def _flat(block: Block) -> Block:
    text = _json(_body(block))
    if block["type"] in CALLS:
        return {**block, "input": {"shortened": text}}
    if block["type"].endswith("tool_result"):
        return {**block, "content": text}
    return {"type": "text", "text": text}


def _json(value: Json) -> str:
    return jsonbytes.encode(value).decode("utf-8")


def _edited(content: str | list[Block], edits: Mapping[Path, Json]) -> str | list[Block]:
    """A copy of `content` with new values at some paths; shares everything else with the original."""
    if isinstance(content, str):
        return str(edits[()])
    root: list[Block] = list(content)
    copies: dict[Path, Json] = {(): root}
    for path, value in edits.items():
        for depth in range(1, len(path)):
            if path[:depth] not in copies:
                parent = copies[path[: depth - 1]]
                parent[path[depth - 1]] = copies[path[:depth]] = copy(parent[path[depth - 1]])
        copies[path[:-1]][path[-1]] = value
    return root


def _characters(message: Message) -> int:
    return sum(len(text) for _, text in _places(message))


def _edge(text: str, index: int, step: int) -> int:
    """The next place from `index` in the direction of `step` that is not inside one visible character."""
    for _ in range(MAX_GRAPHEME_CHARS):
        if not 0 < index < len(text) or not _joined(text[index - 1], text[index]):
            break
        index += step
    return max(0, min(index, len(text)))


def _joined(left: str, right: str) -> bool:
    """Whether two neighbours belong to one visible character."""
    return (
        unicodedata.category(right).startswith("M")  # accents, variation selectors, vowel signs
        or "\u200d" in (left, right)  # zero-width joiner
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # skin tones
        or ("\U0001f1e6" <= left <= "\U0001f1ff" and "\U0001f1e6" <= right <= "\U0001f1ff")  # flags
        or ("\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff")  # halves left by a broken encoder
    )
