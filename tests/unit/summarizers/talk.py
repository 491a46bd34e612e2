"""Conversations of a few lines, and the sections of the summary that the extractive summarizer makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.core.sections import TITLES
from compaction.ports import SummaryRequest
from compaction.summarizers.extractive import extract

_ids = count(1)


def user(text: str, *, meta: bool = False) -> Message:
    """The user says something."""
    return Message(role="user", content=text, is_meta=meta)


def assistant(text: str) -> Message:
    """The agent says something."""
    return Message(role="assistant", content=[{"type": "text", "text": text}])


def called(name: str, result: str | None, *, is_error: bool = False, **fields: Json) -> list[Message]:
    """The agent calls a tool; None as the result leaves the call open."""
    call_id = f"toolu_{next(_ids)}"
    call = {"type": "tool_use", "id": call_id, "name": name, "input": fields}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result, "is_error": is_error}
    messages = [Message(role="assistant", content=[call])]
    return messages if result is None else [*messages, Message(role="user", content=[answer])]


def summary_message(text: str) -> Message:
    """The summary of an earlier compaction, as it stands at the head of the history."""
    return Message(role="user", content=text, is_compact_summary=True)


def asked(
    *parts: Message | Sequence[Message],
    max_output_tokens: int = 20_000,
    prior_summary: str | None = None,
    instructions: str | None = None,
) -> SummaryRequest:
    """A request for a summary of these messages."""
    messages = [message for part in parts for message in ([part] if isinstance(part, Message) else part)]
    return SummaryRequest(
        kind="fresh",
        model="claude-haiku-4-5",
        messages=messages,
        system_prompt="",
        user_prompt="",
        max_output_tokens=max_output_tokens,
        prior_summary=prior_summary,
        instructions=instructions,
    )


def filler(chars: int = 12_000) -> list[Message]:
    """A long file that was read: makes the conversation large enough that nothing has to give way."""
    return called("Read", "x = 1\n" * (chars // 6), file_path="/srv/shop/filler.py")


def sections(request: SummaryRequest) -> dict[int, str]:
    """The nine sections of the summary by number, without their headings."""
    return parted(extract(request))


def parted(text: str) -> dict[int, str]:
    """The sections of a summary; each heading must stand alone on its line, once and in order."""
    body = text.removeprefix("<summary>\n").removesuffix("\n</summary>")
    found: dict[int, str] = {}
    for number, title in enumerate(TITLES, start=1):
        heading = f"\n{number}. {title}:\n"
        assert body.count(heading) == 1
        before, _, body = body.partition(heading)
        found[number - 1] = before.strip("\n")
    found[len(TITLES)] = body.strip("\n")
    return found
