"""Importers: transcript files of agents, read into the bodies that a session stores.

`read` is the door. It gives a Transcript: the session's id and model, a report, and the bodies one by one. The other
way round is `output`: results as those take them whose files these are.
"""

from __future__ import annotations

from typing import BinaryIO

from compaction.errors import InvalidRequest
from compaction.formats import anthropic_messages, claude_code, openai_chat
from compaction.formats.detect import KNOWN, detect
from compaction.formats.report import ImportReport
from compaction.formats.transcript import OnProgress, Transcript

__all__ = ["AUTO", "KNOWN", "ImportReport", "OnProgress", "Transcript", "read"]

AUTO = "auto"
_READERS = {
    claude_code.FORMAT: claude_code.read,
    anthropic_messages.FORMAT: anthropic_messages.read,
    openai_chat.FORMAT: openai_chat.read,
}


def read(file: BinaryIO, *, format_name: str = AUTO, on_progress: OnProgress | None = None) -> Transcript:
    """Reads a seekable binary file once and decides what to import; blocking, so call it in a thread.

    `format_name` is auto or one of KNOWN. `on_progress(bytes_done, bytes_total)` is called now and
    then over both readings, the second of which is the use of `bodies()`. Memory grows
    with the number of rows, not with their size.
    Raises InvalidRequest for an unknown format and for a file without a message, TooLarge for too many rows.
    """
    name = detect(file) if format_name == AUTO else format_name
    reader = _READERS.get(name)
    if reader is None:
        problem = f"must be {AUTO} or one of {', '.join(KNOWN)}"
        raise InvalidRequest(f"The format {problem}.", fields=(("format", problem),))
    return reader(file, on_progress=on_progress)
