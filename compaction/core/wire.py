"""What goes over the wire: turns ready to send, request bodies, and the hash that names a prefix of a conversation."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from compaction.core import jsonbytes
from compaction.core.characters import clean_value
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.core.open_round import sendable
from compaction.core.rendering import render_transcript
from compaction.core.repair import repair
from compaction.core.server_summaries import told_behind_ours
from compaction.core.shared_prefix import PrefixNotShareable, shared_prefix_body
from compaction.core.turns import Turn, merge

__all__ = [
    "PrefixNotShareable",
    "Turn",
    "api_messages",
    "fresh_body",
    "merge",
    "prefix_hash",
    "prefix_hashes",
    "shared_prefix_body",
]


class FreshRequest(Protocol):
    """What a fresh request is made of; `ports.SummaryRequest` has it."""

    @property
    def model(self) -> str:
        """Who summarises."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """What is summarised, as stored."""
        ...

    @property
    def system_prompt(self) -> str:
        """The finished system prompt."""
        ...

    @property
    def user_prompt(self) -> str:
        """The finished prompt that stands after the transcript."""
        ...

    @property
    def max_output_tokens(self) -> int:
        """The most that the model may write."""
        ...


def api_messages(messages: Sequence[Message], *, close_open: bool = False) -> list[Turn]:
    """The conversation as turns {role, content}, valid for the Messages API once a user message is appended.

    Ends with either role. Thinking is gone (something before it may have been rewritten), cache marks too. Open calls
    of the last round stay open, so that their results can still be appended, unless `close_open`; attachments that
    stand behind such a round go before it. Summaries of the API's own behind one of ours are told as text.
    """
    sound = all(message.is_sound for message in messages)
    return repair(merge(told_behind_ours(sendable(messages))), close_open=close_open, sound=sound)[0]


def fresh_body(request: FreshRequest) -> bytes:
    """The JSON body of a streaming request with the transcript as fenced text: no tools, no marks, no thinking."""
    system, prompt = clean_value([request.system_prompt, request.user_prompt], Counter())
    texts = (render_transcript(request.messages), prompt)  # the transcript comes clean
    body: dict[str, Json] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "stream": True,
        "system": system,
        "messages": [{"role": "user", "content": [{"type": "text", "text": text} for text in texts if text.strip()]}],
    }
    if not system.strip():
        del body["system"]
    return jsonbytes.encode(body)


def prefix_hash(messages: Sequence[Message]) -> str:
    """The name of a conversation's state: the last of `prefix_hashes`, "" for none."""
    hashes = prefix_hashes(messages)
    return hashes[-1] if hashes else ""


def prefix_hashes(messages: Sequence[Message]) -> list[str]:
    """One hash per message of the conversation, each over everything up to it.

    Counted are user and assistant messages that are neither a sub-agent's (is_sidechain) nor half streamed (partial),
    in stored order, as they were stored: not merged, not repaired, content a string or a list as it came. The recipe
    for any language, with h₀ = "":

        hᵢ = lower-case hex of SHA-256 over the ASCII bytes of hᵢ₋₁ followed by canonical({"role": …, "content": …})

    `jsonbytes.canonical` says how that object is written; it has no other members.
    """
    hashes: list[str] = []
    last = ""
    for message in messages:
        if message.in_conversation:
            digest = hashlib.sha256(last.encode("ascii"))
            digest.update(jsonbytes.canonical({"role": message.role, "content": message.content}))
            last = digest.hexdigest()
            hashes.append(last)
    return hashes
