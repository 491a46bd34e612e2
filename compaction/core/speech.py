"""What a person typed: a user message without what the agent's client wrapped around it or put in by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction.core.messages import Block

# Elements that clients put into user messages; their content is no wish of the user.
_INSERTED = (
    "system-reminder",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "ide_opened_file",
    "ide_selection",
    "command-message",
    "command-contents",
    "bash-stdout",
    "bash-stderr",
    "environment_details",
)
_PASTED = ("file", "document", "documents", "attachment")  # what people and clients wrap foreign text in
_TAG_VALUE = r"<{0}>\s{{0,200}}([^<]{{0,4000}})</{0}>"
_COMMAND_NAME = re.compile(_TAG_VALUE.format("command-name"))
_SHELL = re.compile(_TAG_VALUE.format("bash-input"))
MAX_ELEMENTS = 200  # of one kind in one message that are taken out
CLIENT_COMMANDS = frozenset(
    {
        "/clear",
        "/exit",
        "/quit",
        "/compact",
        "/model",
        "/login",
        "/logout",
        "/status",
        "/cost",
        "/help",
        "/resume",
        "/config",
        "/context",
    }
)  # they steer the client, the model never acts on them


def typed(blocks: Sequence[Block]) -> str:
    """The words of the user in a message's blocks, or nothing. Media are named in brackets."""
    words = [
        spoken(text) for text in (block.get("text") for block in blocks if _is(block, "text")) if isinstance(text, str)
    ]
    media = [f"[{block['type']} attached]" for block in blocks if _is(block, "image") or _is(block, "document")]
    return "\n\n".join(part for part in [*words, *media] if part)


def spoken(text: str) -> str:
    """`text` without inserted elements; a slash command as it was typed."""
    if "<" not in text:
        return text.strip()
    plain = text
    for tag in (*_INSERTED, *_PASTED):
        if f"<{tag}" in plain:
            plain = _without(plain, tag, to_the_end=tag in _INSERTED)
    return _as_typed(plain).strip()


def _as_typed(text: str) -> str:
    name = _COMMAND_NAME.search(text)
    if name:
        command = name.group(1).strip()
        command = command if command.startswith("/") else f"/{command}"
        return "" if command in CLIENT_COMMANDS else f"{command} {_between(text, 'command-args')}"
    shell = _SHELL.search(text)
    return f"! {shell.group(1)}" if shell else text


def _without(text: str, tag: str, *, to_the_end: bool) -> str:
    """Without the elements of a kind. One that does not end, or one too many, goes to the end of the text if it may."""
    opening, closing = re.compile(rf"<{tag}(?:\s[^<>]{{0,500}})?>"), f"</{tag}>"
    kept: list[str] = []
    start = 0
    while opened := opening.search(text, start):
        closed = text.find(closing, opened.end()) if len(kept) < MAX_ELEMENTS else -1
        if closed < 0:
            if to_the_end:
                return "".join([*kept, text[start : opened.start()]])
            break
        kept.append(text[start : opened.start()])
        start = closed + len(closing)
    return "".join([*kept, text[start:]])


def _between(text: str, tag: str) -> str:
    _, _, rest = text.partition(f"<{tag}>")
    inner, closed, _ = rest.partition(f"</{tag}>")
    return inner.strip() if closed else ""


def _is(block: Block, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind
