"""The conversation as fenced text: what a fresh request shows the model.

Each message begins with a header line that starts with the fence, a run of tildes longer than any in the content. So no
text in the transcript can end it or pose as a message of another speaker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from compaction.core.block_text import block_text, content_text, input_text, media_text, name_of
from compaction.core.characters import clean_text
from compaction.core.encoded import shorten_encoded
from compaction.core.fields import CALLS, MEDIA, SIGNED, ident, is_server_result
from compaction.core.messages import Block, Message
from compaction.core.turns import distinct

FENCE_CHARS = 4  # of the usual fence; tildes in a row are rare in prose and code
MAX_FENCE_CHARS = 32  # the fence stands in every header; longer runs in the content are broken up by spaces
NO_OUTPUT = "(no output)"
SUMMARY = "summary of everything before this point"

_SHORTEST = "~" * FENCE_CHARS
_RUN = re.compile(f"~{{{FENCE_CHARS},}}")
_LONGEST = "~" * (MAX_FENCE_CHARS - 1)
_TOO_LONG = re.compile(f"{_LONGEST}(?=~)")

_Part = tuple[str, str]  # what the header says, the text under it


def render_transcript(messages: Sequence[Message]) -> str:
    """The conversation in order, one section per text, call and result; the last line closes the fence.

    Left out: injected (meta) messages, thinking, and what is outside the conversation. Media are markers with kind and
    size. NUL and lone surrogates are replaced. Encoded data in results is shortened; no other text is.
    """
    parts = list(_parts(messages))
    fence = _fence(parts)
    headers = {header: f"{fence} {header}\n" for header, _ in parts}
    pieces = [piece for header, text in parts for piece in (headers[header], text, "\n")]
    pieces.append(f"{fence} end of the transcript")
    return "".join(pieces)


def _fence(parts: Sequence[_Part]) -> str:
    """A run of tildes that occurs in no header and no text."""
    suspects = (text for part in parts for text in part if "~" in text and _SHORTEST in text)
    return "~" * (max((len(run) for text in suspects for run in _RUN.findall(text)), default=FENCE_CHARS - 1) + 1)


def _parts(messages: Sequence[Message]) -> Iterator[_Part]:
    tally: Counter[str] = Counter()  # what was replaced matters to nobody here
    names: dict[str, str] = {}
    for message in distinct(messages):
        if message.is_meta:
            continue
        speaker = SUMMARY if message.is_compact_summary else message.role
        if isinstance(message.content, str):
            parts = [(speaker, message.content)]
        else:
            parts = [_part(block, speaker, names) for block in message.content]
        for header, text in parts:
            if text and not text.isspace():
                yield header, _broken_up(text if message.is_sound else clean_text(text, tally))


def _broken_up(text: str) -> str:
    """`text` without runs of tildes that would need a longer fence."""
    return _TOO_LONG.sub(f"{_LONGEST} ", text) if "~" in text and _LONGEST in text else text


def _part(block: Block, speaker: str, names: dict[str, str]) -> _Part:
    """Header and text of one block; without text nothing is shown."""
    kind = block["type"]
    if kind == "text" and isinstance(block.get("text"), str):
        return speaker, block["text"]
    if kind in CALLS:
        name = names[ident(block.get("id"))] = _broken_up(clean_text(name_of(block), Counter()))
        return f"call of {name}", input_text(block)
    if kind == "tool_result" or is_server_result(kind):
        name = names.get(ident(block.get("tool_use_id")), "an unknown call")
        failed = ", an error" if block.get("is_error") else ""
        text = shorten_encoded(content_text(block.get("content")))
        return f"result of {name}{failed}", text if text and not text.isspace() else NO_OUTPUT
    if kind in MEDIA:
        return speaker, media_text(block)
    if kind == "compaction":
        return SUMMARY, content_text(block.get("content"))
    return speaker, "" if kind in SIGNED else block_text(block)
