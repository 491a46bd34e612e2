"""Pieces of a transcript made fit for a summary: valid UTF-8, bounded, and unable to end the summary's own tags."""

from __future__ import annotations

import re

_TERMINAL = re.compile(r"\x1b\[[0-9;?]{0,40}[ -/]{0,4}[@-~]")  # colours and cursor moves of a terminal
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # UTF-8 or Postgres cannot carry them
_TAG = re.compile(r"<(?=[\s/]{0,8}(?:summary|analysis)\b)", re.IGNORECASE)  # the tags that `core.summary` looks for
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")  # what a reader may take for a line's end

WHITE_SPACE_FACTOR = 4  # how much more is read than wanted, because folding white space shortens it
MAX_ROW_CHARS = 200  # of a line of code or output; longer ones are data
NEAR_CHARS = 60  # how much more is given up so that a cut falls between words
HEAD_SHARE = 2 / 3  # of a cut text, the part from its beginning: a wish stands first or last, pasted logs in between


def clean(text: str) -> str:
    """`text` without terminal codes and unfit characters, each line ended alike, summary tags as `&lt;summary>`."""
    plain = _LINE_END.sub("\n", _TERMINAL.sub("", text))
    return _TAG.sub("&lt;", _UNFIT.sub("\ufffd", plain))


def excerpt(text: str, limit_chars: int) -> str:
    """`text` as it is, or its head and tail with a mark that says how many characters were left out between them."""
    body = text.strip()
    if len(body) <= limit_chars:
        return clean(body)
    head = _to_break(body[: int(limit_chars * HEAD_SHARE)])
    tail = _from_break(body[len(body) - (limit_chars - int(limit_chars * HEAD_SHARE)) :])
    left_out = len(body) - len(head) - len(tail)
    return f"{clean(head).rstrip()}\n[… {left_out:,} characters left out …]\n{clean(tail).lstrip()}"


def _to_break(head: str) -> str:
    """Without the piece of a line or word at the end, where the break is near."""
    at = max(head.rfind("\n", len(head) - NEAR_CHARS), head.rfind(" ", len(head) - NEAR_CHARS))
    return head[:at] if at > 0 else head


def _from_break(tail: str) -> str:
    at = tail.find("\n", 0, NEAR_CHARS)
    at = at if at >= 0 else tail.find(" ", 0, NEAR_CHARS)
    return tail[at + 1 :]


def line(text: str, limit_chars: int) -> str:
    """`text` on one line, white space folded, cut with `…`."""
    folded = " ".join(clean(text[: limit_chars * WHITE_SPACE_FACTOR]).split())
    return folded if len(folded) <= limit_chars else folded[: limit_chars - 1].rstrip() + "…"


def first_line(text: str, limit_chars: int) -> str:
    """The first line of `text` that says something."""
    head = clean(text[: limit_chars * WHITE_SPACE_FACTOR])
    return next((line(row, limit_chars) for row in head.split("\n") if row.strip()), "")


def bullet(text: str) -> str:
    """`text` as a list entry: further lines are indented, so that none can pass for a heading of the summary."""
    return "- " + "\n".join(row if index == 0 else f"  {row}".rstrip() for index, row in enumerate(text.split("\n")))


def quoted(text: str, limit_lines: int, limit_chars: int) -> str:
    """Lines of code or output, each behind a bar; a last line says how many were left out."""
    rows = [row[:MAX_ROW_CHARS] for row in clean(text[:limit_chars]).strip("\n").split("\n")]
    if len(text) > limit_chars and len(rows) > 1:
        rows = rows[:-1]  # the last one is cut somewhere
    shown = rows[:limit_lines]
    left_out = text.strip("\n").count("\n") + 1 - len(shown)
    tail = [f"| [… {left_out:,} more lines]"] if left_out > 0 else []
    return "\n".join([*(f"| {row}".rstrip() for row in shown), *tail])


def code(text: str, limit_chars: int) -> str:
    """`text` as one line of inline code."""
    return f"`{line(text, limit_chars).replace('`', chr(0x2BC))}`"
