"""From the bytes a producer sent to rows to store: cut out unchanged, each one checked, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from api.bodies import shaped
from api.errors import Malformed, printable
from api.schemas.messages import AppendOptions
from compaction.core import json_values, jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, MessageProblem, decode_message
from compaction.errors import InvalidRequest
from compaction.store.sessions import NewMessage

MAX_BATCH = 10_000  # messages in one append; a whole session fits, the row lock stays short
_APPEND_FIELDS = frozenset({"messages", "expected_seq"})


@dataclass(frozen=True, slots=True)
class Batch:
    """What an append asks for."""

    messages: tuple[NewMessage, ...]
    expected_seq: int | None


def append_batch(body: bytes) -> Batch:
    """The batch in an append's body. Raises Malformed or InvalidRequest with the paths that are wrong."""
    fields = object_fields(body)
    unknown = sorted(set(fields) - _APPEND_FIELDS)
    if unknown:
        raise wrong(*((printable(name), "unknown field") for name in unknown))
    if "messages" not in fields:
        raise wrong(("messages", "is missing; send a list of messages"))
    options = decoded({name: raw for name, raw in fields.items() if name != "messages"})
    expected_seq = shaped(AppendOptions, options).expected_seq
    return Batch(tuple(new_messages(elements(fields["messages"], "send several batches"))), expected_seq)


def object_fields(body: bytes) -> dict[str, bytes]:
    """The members of the JSON object in `body`, as the bytes they stand as. Raises Malformed or InvalidRequest."""
    try:
        return jsonbytes.members(body)
    except ValueError:
        decoded({"body": body})  # says what is wrong with the JSON, if it is that
    raise InvalidRequest("The body must be a JSON object.")


def decoded(fields: Mapping[str, bytes]) -> dict[str, Json]:
    """The values of `fields`. Raises Malformed."""
    try:
        return {name: jsonbytes.decode(raw) for name, raw in fields.items()}
    except ValueError as error:
        raise Malformed(f"The body is not JSON: {error}.") from None


def new_messages(
    bodies: Iterable[bytes], *, path: str = "messages", after: Message | None = None
) -> Iterable[NewMessage]:
    """Each body as a row to store. `after` is the message before the first. Raises InvalidRequest naming the place."""
    previous = after
    for index, body in enumerate(bodies):
        if json_values.holds_more(body, json_values.MAX_MESSAGE_VALUES):
            raise wrong((f"{path}[{index}]", f"holds more than {json_values.MAX_MESSAGE_VALUES} JSON values"))
        try:
            message = decode_message(body)
        except MessageProblem as error:
            place = "" if error.field == "message" else f".{error.field}"
            raise wrong((f"{path}[{index}]{place}", error.problem)) from None
        yield NewMessage(
            body=body,
            uuid=message.uuid,
            role=message.role,
            partial=message.partial,
            starts_live=_starts_live(message, previous),
        )
        previous = message


def _starts_live(message: Message, previous: Message | None) -> bool:
    """Whether the live view begins here: at a boundary, or at an earlier summary that has none before it."""
    if message.partial or message.is_sidechain:
        return False
    return message.is_boundary or (message.is_compact_summary and not (previous and previous.is_boundary))


def elements(raw: bytes, advice: str) -> Sequence[bytes]:
    """The messages of a list as the bytes they stand as. Raises InvalidRequest, with `advice` for too long a list."""
    if raw[:1] != b"[":
        raise wrong(("messages", "must be a list"))
    try:
        bodies = jsonbytes.elements(raw)
    except ValueError as error:
        raise Malformed(f"The body is not JSON: {error}.") from None
    if len(bodies) > MAX_BATCH:
        raise wrong(("messages", f"holds more than {MAX_BATCH} messages; {advice}"))
    return bodies


def wrong(*fields: tuple[str, str]) -> InvalidRequest:
    """The refusal of a body for these paths and what must stand there."""
    return InvalidRequest("The body has wrong fields; see `errors`.", fields=fields)
