"""Messages that each compaction makes anew from the session's state: attachments, and what SessionStart hooks say.

They carry a kind in their metadata. A later compaction never keeps them word for word: it makes new ones, and an old
list of files beside the new one would grow with every compaction.
"""

from __future__ import annotations

from dataclasses import replace

from compaction.core.messages import Message

ATTACHMENT_KIND = "compact_attachment"
HOOK_KIND = "compact_hook_message"
_KINDS = frozenset({ATTACHMENT_KIND, HOOK_KIND})


def is_rebuilt(message: Message) -> bool:
    """Whether the next compaction makes this message anew."""
    kind = (message.metadata or {}).get("kind")
    return isinstance(kind, str) and kind in _KINDS


def hook_message(message: Message) -> Message:
    """A SessionStart hook's message, marked as made anew by each compaction."""
    return replace(message, metadata={**(message.metadata or {}), "kind": HOOK_KIND})
