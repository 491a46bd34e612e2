"""The files that an agent worked on, as far as its own tool calls show what is in them.

What a file holds now is followed through the conversation: a read or a write says it, an edit is carried out on it.
Where an edit does not fit (a part was read only, or the file changed elsewhere), the content is no longer known, and a
file whose content is not known does not come back: a stale copy would be worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice, takewhile

from compaction.core.exchanges import Exchange, exchanges
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Message
from compaction.core.microcompact import CLEARED
from compaction.core.session_state import Note
from compaction.core.tool_table import ToolTable

MAX_FOLLOWED_CHARS = 200_000  # of one file; 20,000 come back at most, and edits are carried out on what is followed

_Touch = tuple[str, Exchange]  # Read, Write or Edit, and the call with its result

_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file", "filename", "file")
_CONTENT_KEYS = ("content", "file_text", "contents")
PART_KEYS = frozenset({"offset", "limit", "view_range", "start_line", "end_line", "pages"})  # only a part was read
_NUMBERED = re.compile(r" {0,8}[0-9]{1,7}(?:\u2192|\t)")  # how Read and cat -n number lines
_PATCHED = re.compile(
    r"^\*\*\* (?:Add|Update|Delete) File: (\S[^\n]{0,500})", re.MULTILINE
)  # in a patch for many files


def path_of(call: Block) -> str | None:
    """The file that a call is about, None when it names none."""
    given = call.get("input")
    return _first(given, _PATH_KEYS) if isinstance(given, dict) else None


def recent_files(
    messages: Sequence[Message], table: ToolTable, *, passed: Collection[str] = (), most: int | None = None
) -> tuple[Note, ...]:
    """The files whose content is known at the end of `messages`, the one touched last first.

    At most `most` of them, without those in `passed`; only what is told is followed. Time is linear in the
    conversation, plus MAX_FOLLOWED_CHARS for each edit of a file that is told.
    """
    touched: dict[str, list[_Touch]] = {}
    for one in exchanges(messages):
        kind, path = table.kind_of_call(one.call), path_of(one.call)
        if kind not in ("Read", "Write", "Edit") or one.result.get("is_error"):
            continue
        if path is None:
            touched.update((patched, []) for patched in _patched(one.call))
            continue
        touches = touched.pop(path, [])  # the file moves to the end
        if _shows_all(kind, one):
            touches = []  # what was before does not matter any more
        touches.append((kind, one))
        touched[path] = touches
    known = ((path, _followed(touches)) for path, touches in reversed(touched.items()) if path not in passed)
    return tuple(islice((Note(path, text) for path, text in known if text), most))


def shown_files(messages: Sequence[Message], table: ToolTable) -> frozenset[str]:
    """The paths of files whose content a read or a write in `messages` still shows."""
    return frozenset(
        path
        for one in exchanges(messages)
        if (path := path_of(one.call)) is not None
        and table.kind_of_call(one.call) in ("Read", "Write")
        and not one.result.get("is_error")
        and one.result.get("content") != CLEARED
    )


def _shows_all(kind: str, one: Exchange) -> bool:
    """Whether a call tells all that the file holds, whatever it held before."""
    return kind == "Write" or (
        kind == "Read" and one.result.get("content") != CLEARED and PART_KEYS.isdisjoint(one.call["input"])
    )


def _followed(touches: Sequence[_Touch]) -> str | None:
    """What the file holds after these calls, as far as it is known."""
    text: str | None = None
    for kind, one in touches:
        text = _content(kind, one, text)
    return text


def _content(kind: str, one: Exchange, before: str | None) -> str | None:
    """What the file holds after a call, as far as it is known."""
    given = one.call["input"]
    if kind == "Write":
        written = _first(given, _CONTENT_KEYS)
        return None if written is None else written[:MAX_FOLLOWED_CHARS]
    if kind == "Edit":
        return _edited(before, given)
    if one.result.get("content") == CLEARED or (before is not None and not PART_KEYS.isdisjoint(given)):
        return before
    shown = _shown(one.result.get("content"))
    return shown if shown is None or not PART_KEYS.isdisjoint(given) else _unnumbered(shown)


def _edited(text: str | None, given: dict[str, Json]) -> str | None:
    edits = given.get("edits")
    for edit in edits if isinstance(edits, list) else [given]:
        old, new = (_first(edit, (f"{name}_string", f"{name}_str"), blank=True) for name in ("old", "new"))
        if old == "" and new is not None and not text:  # how Edit makes a new file
            text = new[:MAX_FOLLOWED_CHARS]
        elif not old or new is None or text is None or old not in text:
            return None
        else:
            enough = MAX_FOLLOWED_CHARS // max(1, len(new)) + 1  # what comes behind so many is cut off anyway
            text = text.replace(old, new, enough if edit.get("replace_all") else 1)[:MAX_FOLLOWED_CHARS]
    return text


def _shown(content: Json) -> str | None:
    """The text of a read's result; None for images and for a client's note in place of a text."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    text = "\n".join(texts)[:MAX_FOLLOWED_CHARS]
    return None if len(texts) < len(blocks) or text.lstrip().startswith("<system-reminder>") else text


def _unnumbered(shown: str) -> str:
    """The text without the line numbers that the tool put before it, and without what it put around the file."""
    lines = shown.split("\n")
    first = next((place for place in range(min(2, len(lines))) if _NUMBERED.match(lines[place])), None)
    if first is None:
        return shown
    marks = takewhile(bool, (_NUMBERED.match(line) for line in lines[first:]))
    return "\n".join(mark.string[mark.end() :] for mark in marks if mark is not None)


def _patched(call: Block) -> Iterable[str]:
    """The files that a patch changes: what they hold then is not known."""
    given = call.get("input")
    texts = given.values() if isinstance(given, dict) else [given]
    return [
        found.group(1).strip()
        for text in texts
        if isinstance(text, str)
        for found in _PATCHED.finditer(text[:MAX_FOLLOWED_CHARS])
    ]


def _first(given: Json, keys: Sequence[str], *, blank: bool = False) -> str | None:
    """The first text under one of the keys; a blank one only if that may be."""
    if not isinstance(given, dict):
        return None
    return next((given[key] for key in keys if isinstance(given.get(key), str) and (blank or given[key].strip())), None)
