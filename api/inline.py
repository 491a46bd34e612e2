"""Inline jobs: a request that brings its messages gets a session of its own, which nobody else reaches.

It is an ordinary job from there on. The session goes with its jobs (`store.retention`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from api.bodies import shaped
from api.intake import decoded, elements, new_messages, object_fields, wrong
from api.schemas.inline import InlineFields
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.errors import TooLarge
from compaction.formats import listed
from compaction.formats.detect import Format
from compaction.formats.listed import Listed
from compaction.store import sessions
from compaction.store.engine import Connection
from compaction.store.sessions import PARAMETERS, NewMessage, SessionRow

_OWN = frozenset({"messages", "model"})  # who sends one of them and no session means this kind of request
_NOT_BOTH = "does not go with session_id: name a stored session, or send model and messages"
_TOO_LONG = "store a session and append them in batches"


@dataclass(frozen=True, slots=True)
class Inline:
    """A request that was read: its fields, the parameters for the session and the messages to store."""

    wanted: InlineFields
    parameters: Mapping[str, bytes] = field(repr=False)
    messages: tuple[NewMessage, ...] = field(repr=False)

    async def create_session(self, conn: Connection, tenant_id: int) -> SessionRow:
        """The session of the job, without messages yet: whether the job is taken is cheaper to find out."""
        return await sessions.create_ephemeral(
            conn,
            tenant_id,
            model=self.wanted.model,
            parameters=self.parameters,
            settings=self.wanted.settings,
            query_source=self.wanted.query_source,
        )

    async def store_messages(self, conn: Connection, session: SessionRow) -> None:
        """Appends the messages, in the transaction that made the session."""
        await sessions.append(conn, session.id, self.messages, locked=session)


def inline_in(body: bytes) -> Inline | None:
    """The inline request in `body`; None when it is none. Raises Malformed, or InvalidRequest with the wrong paths."""
    raws = object_fields(body)
    if not _OWN & set(raws):
        return None
    if "session_id" in raws:
        raise wrong(*((name, _NOT_BOTH) for name in sorted(_OWN & set(raws))))
    raw_messages = raws.pop("messages", None)
    wanted = shaped(InlineFields, decoded(raws))
    if raw_messages is None:
        raise wrong(("messages", "is missing; send a list of messages, or the session_id of a stored session"))
    given = elements(raw_messages, _TOO_LONG)
    found = listed.read(given, format_name=_format(wanted), tools=wanted.tools)
    messages = tuple(new_messages(found.bodies))
    if not any(message.role != "system" for message in messages):
        raise wrong(("messages", "hold no conversation: there is no user or assistant message"))
    return Inline(wanted, _parameters(raws, wanted, found), messages)


def _format(wanted: InlineFields) -> Format | None:
    return None if wanted.format == "auto" else wanted.format


def _parameters(raws: Mapping[str, bytes], wanted: InlineFields, found: Listed) -> dict[str, bytes]:
    """The session's parameters: as the bytes they came as, unless the messages' format says more of them."""
    given = {name: raws[name] for name in PARAMETERS if name in raws}
    if found.system is not None:
        given["system"] = jsonbytes.encode(_with_system(wanted.system, found.system))
    if found.tools != wanted.tools:
        given["tools"] = jsonbytes.encode(found.tools)
    return given


def refuse_large(order: Inline, limit_bytes: int) -> None:
    """Raises TooLarge for system, tools and request that a stored session could not have either."""
    if sum(map(len, order.parameters.values())) > limit_bytes:
        raise TooLarge(f"system, tools and request are larger than the {limit_bytes} bytes that this server takes.")


def _with_system(own: Json, more: str) -> Json:
    """The request's own system prompt, a text or blocks, with what the messages say as one behind it."""
    if not own:
        return more
    return f"{own}\n\n{more}" if isinstance(own, str) else [*own, {"type": "text", "text": more}]
