"""Hooks around a compaction: what they may answer, the limits on it, and how several answers become one.

A hook is a plugin of the operator or an HTTP endpoint of the tenant (`compaction.hooks` asks them). Whatever goes wrong
with one becomes its note. Notes are our own words: they never hold what a hook said, except for the reason of a veto.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from compaction.core import tokens
from compaction.core.characters import clean_text
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Content, Message, MessageProblem, message_from
from compaction.ports import HookNote, PreCompactAnswer, SessionStartAnswer

Event = Literal["pre_compact", "session_start"]

DEFAULT_TIMEOUT_SECONDS = 5.0  # a compaction itself takes 10 seconds and more: a hook should not be felt
MIN_TIMEOUT_SECONDS = 0.1  # less than a TLS handshake over a continent
MAX_TIMEOUT_SECONDS = 30.0  # of one hook, and so of all hooks of an event: they are asked at the same time
MAX_ENDPOINTS = 20  # HTTP hooks of one tenant, both events together
MAX_INSTRUCTIONS_CHARS = 20_000  # of all hooks together; as many as a request may bring
MAX_MESSAGES = 20  # of all hooks together; a hook has one or two things to say
MAX_MESSAGES_TOKENS = 10_000  # of all hooks together: a twentieth of a 200,000-token window
MAX_REASON_CHARS = 300  # of a veto; leaves room in an error message of 500
MAX_PROBLEM_CHARS = 200  # of a note


class BadAnswer(ValueError):
    """A hook answered what no hook may answer; the text says what is wrong and quotes nothing."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An HTTP hook of a tenant. `secret` is `whsec_` and base64; it and the address stay out of every repr."""

    id: str
    event: Event
    url: str = field(repr=False)
    secret: str = field(repr=False)
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    """What asking one hook came to: an answer nobody has judged yet (None: nothing to say), or a problem."""

    name: str
    event: Event
    seconds: float
    answer: Json = None
    problem: str | None = None

    def note(self, problem: str | None = None) -> HookNote:
        """The hook's note; `problem` is what was found wrong with its answer."""
        told = problem or self.problem
        return HookNote(
            name=self.name,
            event=self.event,
            ok=told is None,
            seconds=round(self.seconds, 3),
            problem=None if told is None else one_line(told, MAX_PROBLEM_CHARS),
        )


def pre_compact_answer(outcomes: Sequence[HookOutcome]) -> PreCompactAnswer:
    """All hooks' answers as one: instructions in the hooks' order, and the first veto.

    An answer is null or {"instructions"?: text, "veto"?: true or the reason as text}; other members are ignored, and
    beside a veto the instructions too.
    """
    notes: list[HookNote] = []
    instructions: list[str] = []
    vetoes: list[str] = []
    room = MAX_INSTRUCTIONS_CHARS
    for outcome in outcomes:
        try:
            answer = _object(outcome.answer)
            veto = _veto(answer.get("veto"))
            text = "" if veto else _instructions(answer.get("instructions"), room)
        except BadAnswer as error:
            notes.append(outcome.note(str(error)))
            continue
        notes.append(outcome.note())
        room -= len(text)
        instructions += [text] if text else []
        vetoes += [veto] if veto else []
    veto = vetoes[0] if vetoes else None
    return PreCompactAnswer(instructions="\n\n".join(instructions) or None, veto=veto, notes=tuple(notes))


def session_start_answer(outcomes: Sequence[HookOutcome]) -> SessionStartAnswer:
    """All hooks' messages in the hooks' order; those of a hook that would pass the limits are left out, with a note.

    An answer is null or {"messages": [{"role": "user", "content": text or text blocks}, …]}; other members are ignored.
    """
    notes: list[HookNote] = []
    messages: list[Message] = []
    room_tokens = MAX_MESSAGES_TOKENS
    for outcome in outcomes:
        try:
            given = _messages(_object(outcome.answer).get("messages"), MAX_MESSAGES - len(messages), room_tokens)
        except BadAnswer as error:
            notes.append(outcome.note(str(error)))
            continue
        notes.append(outcome.note())
        messages += given
        room_tokens -= tokens.estimate_messages(given)
    return SessionStartAnswer(messages=tuple(messages), notes=tuple(notes))


def one_line(text: str, limit_chars: int) -> str:
    """`text` as one short line for people: nothing that steers a terminal, no half characters, single spaces."""
    visible = "".join(character if character.isprintable() else " " for character in text[: 4 * limit_chars])
    line = " ".join(visible.split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1] + "…"


def _object(answer: Json) -> dict[str, Json]:
    if answer is None:
        return {}
    if not isinstance(answer, dict):
        raise BadAnswer("the answer must be an object")
    return answer


def _veto(value: Json) -> str | None:
    """The reason; None without a veto."""
    if value is None or value is False:
        return None
    if value is True:
        return "no reason was given"
    reason = one_line(value, MAX_REASON_CHARS) if isinstance(value, str) else ""
    if not reason:
        raise BadAnswer("veto must be true, false or the reason as text")
    return reason


def _instructions(value: Json, room_chars: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadAnswer("instructions must be text")
    text = clean_text(value, Counter()).strip()
    if len(text) > room_chars:
        raise BadAnswer(f"all hooks together may bring instructions of {MAX_INSTRUCTIONS_CHARS:,} characters")
    return text


def _messages(value: Json, room: int, room_tokens: int) -> list[Message]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadAnswer("messages must be a list")
    if len(value) > room:
        raise BadAnswer(f"all hooks together may bring {MAX_MESSAGES} messages")
    given = [_message(item, f"messages[{index}]") for index, item in enumerate(value)]
    if tokens.estimate_messages(given) > room_tokens:
        raise BadAnswer(f"all hooks together may bring messages of {MAX_MESSAGES_TOKENS:,} tokens")
    return given


def _message(value: Json, place: str) -> Message:
    try:
        given = message_from(value)
    except MessageProblem as error:
        where = place if error.field == "message" else f"{place}.{error.field}"
        raise BadAnswer(f"{where} {error.problem}") from None
    if given.role != "user":
        raise BadAnswer(f"{place}.role must be user")
    return Message(role="user", content=_texts(given.content, place), is_meta=True)


def _texts(content: Content, place: str) -> Content:
    """The content with nothing but text in it. Cache marks and the like go: the four that are allowed are not ours."""
    if isinstance(content, str):
        text = clean_text(content, Counter())
        if not text.strip():
            raise BadAnswer(f"{place}.content is blank")
        return text
    blocks: list[Block] = []
    for index, block in enumerate(content):
        if block["type"] != "text" or not isinstance(block.get("text"), str):
            raise BadAnswer(f"{place}.content[{index}] must be a text block")
        text = clean_text(block["text"], Counter())
        blocks += [{"type": "text", "text": text}] if text.strip() else []
    if not blocks:
        raise BadAnswer(f"{place}.content is blank")
    return blocks
