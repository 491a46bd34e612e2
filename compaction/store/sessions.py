"""Sessions: what a producer says about one. Their messages are in `store.histories`, named here too."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import BigInteger, Text, bindparam, case, cast, func, insert, literal_column, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.store import bodies, plain
from compaction.store.appending import Appended, NewMessage
from compaction.store.branches import follow
from compaction.store.histories import StoredMessage, append, load_full
from compaction.store.live_views import LiveView, load_live, load_original, load_replaced, load_tail
from compaction.store.session_rows import COLUMNS, SessionRow
from compaction.store.tables import sessions

__all__ = [
    "PARAMETERS",
    "Appended",
    "LiveView",
    "NewMessage",
    "SessionRow",
    "StoredMessage",
    "append",
    "create_ephemeral",
    "follow",
    "get",
    "load_full",
    "load_live",
    "load_original",
    "load_parameters",
    "load_replaced",
    "load_tail",
    "parameters_in",
    "put",
]

PARAMETERS = ("system", "tools", "request")  # DESIGN §5: what a PUT may say beside model, settings and query_source

EPHEMERAL = "inline/"  # begins their names: no producer's session id holds a slash (DESIGN §8), so none can clash

_BY_NAME = (
    sessions.c.tenant_id == bindparam("b_tenant_id", type_=BigInteger),
    sessions.c.name == bindparam("b_name", type_=Text),
)
_MODEL = bindparam("b_model", type_=Text)
_SOURCE = bindparam("b_query_source", type_=Text)
_SETTINGS = cast(bindparam("b_settings", type_=Text), JSONB)
_STORED = bindparam("b_parameters", type_=sessions.c.parameters.type)

_GET = select(*COLUMNS).where(*_BY_NAME)
_GET_TO_APPEND = _GET.with_for_update(key_share=True)  # as `histories` locks it: enqueues need not wait
_LOCK = select(sessions.c.id, sessions.c.parameters).where(*_BY_NAME).with_for_update(key_share=True)
_PARAMETERS = select(sessions.c.parameters).where(sessions.c.id == bindparam("b_id", type_=BigInteger))
_CREATE = (
    upsert(sessions)
    .values(
        tenant_id=bindparam("b_tenant_id", type_=BigInteger),
        name=bindparam("b_name", type_=Text),
        model=_MODEL,
        query_source=func.nullif(_SOURCE, literal_column("''")),
        parameters=_STORED,
        settings=func.coalesce(_SETTINGS, literal_column("'{}'::jsonb")),
    )
    .on_conflict_do_nothing(index_elements=["tenant_id", "name"])
    .returning(*COLUMNS)
)
_CREATE_EPHEMERAL = (
    insert(sessions)
    .values(
        tenant_id=bindparam("b_tenant_id", type_=BigInteger),
        name=literal_column(f"'{EPHEMERAL}' || uuidv7()", Text),
        model=_MODEL,
        query_source=_SOURCE,
        parameters=_STORED,
        settings=func.coalesce(_SETTINGS, literal_column("'{}'::jsonb")),
        is_ephemeral=literal_column("true"),
    )
    .returning(*COLUMNS)
)
_CHANGE = (
    update(sessions)
    .where(sessions.c.id == bindparam("b_id", type_=BigInteger))
    .values(
        model=func.coalesce(_MODEL, sessions.c.model),
        query_source=case(
            (_SOURCE.is_(None), sessions.c.query_source), else_=func.nullif(_SOURCE, literal_column("''"))
        ),
        parameters=func.coalesce(_STORED, sessions.c.parameters),
        settings=func.coalesce(_SETTINGS, sessions.c.settings),
        updated_at=func.now(),
    )
    .returning(*COLUMNS)
)


async def put(  # noqa: PLR0913 - the fields of a PUT
    conn: AsyncConnection,
    tenant_id: int,
    name: str,
    *,
    model: str | None = None,
    parameters: Mapping[str, bytes] | None = None,
    settings: Mapping[str, Json] | None = None,
    query_source: str | None = None,
) -> SessionRow:
    """Creates or changes a session. What is None keeps its value; "" takes a query_source away.

    `parameters` holds the exact JSON bytes of system, tools and request: a missing one keeps its value, `null` takes it
    away. `settings` are replaced as a whole. Raises errors.InvalidRequest when a new session has no model.
    """
    names = {"b_tenant_id": tenant_id, "b_name": plain.text("session_id", name)}
    said = {
        "b_model": plain.optional_text("model", model),
        "b_query_source": plain.optional_text("query_source", query_source),
        "b_settings": None if settings is None else plain.json_text("settings", dict(settings)),
    }
    found = (await conn.execute(_LOCK, names)).one_or_none()
    if found is None:
        if model is None:
            raise errors.InvalidRequest("A new session needs a model.", fields=(("model", "is required"),))
        created = await conn.execute(_CREATE, {**names, **said, "b_parameters": _merged(None, parameters)})
        row = created.one_or_none()
        if row is not None:
            return SessionRow(*row)
        found = (await conn.execute(_LOCK, names)).one_or_none()  # another request created it at the same moment
        if found is None:
            raise errors.Conflict("The session was made and erased by others at this moment. Send it again.")
    changed = await conn.execute(
        _CHANGE, {**said, "b_id": found.id, "b_parameters": _merged(found.parameters, parameters)}
    )
    return SessionRow(*changed.one())


async def create_ephemeral(  # noqa: PLR0913 - the fields of a PUT
    conn: AsyncConnection,
    tenant_id: int,
    *,
    model: str,
    parameters: Mapping[str, bytes] | None = None,
    settings: Mapping[str, Json] | None = None,
    query_source: str | None = None,
) -> SessionRow:
    """A session for one inline job: it has no name that a producer could ask for, and `retention` takes it away."""
    said = {
        "b_tenant_id": tenant_id,
        "b_model": plain.text("model", model),
        "b_query_source": plain.optional_text("query_source", query_source),
        "b_settings": None if settings is None else plain.json_text("settings", dict(settings)),
        "b_parameters": _merged(None, parameters),
    }
    return SessionRow(*(await conn.execute(_CREATE_EPHEMERAL, said)).one())


async def get(conn: AsyncConnection, tenant_id: int, name: str, *, to_append: bool = False) -> SessionRow | None:
    """The tenant's session of that name; `to_append` keeps other appends out until the transaction ends."""
    names = {"b_tenant_id": tenant_id, "b_name": plain.text("session_id", name)}
    row = (await conn.execute(_GET_TO_APPEND if to_append else _GET, names)).one_or_none()
    return None if row is None else SessionRow(*row)


async def load_parameters(conn: AsyncConnection, session_id: int) -> dict[str, bytes]:
    """The exact JSON bytes of system, tools and request as the producer sent them; what was never sent is missing."""
    stored = (await conn.execute(_PARAMETERS, {"b_id": session_id})).scalar_one_or_none()
    return parameters_in(stored)


def parameters_in(stored: bytes | None) -> dict[str, bytes]:
    """The members of packed parameters, as `load_parameters` gives them."""
    return {} if stored is None else jsonbytes.members(bodies.unpack(stored))


def _merged(stored: bytes | None, given: Mapping[str, bytes] | None) -> bytes | None:
    """The stored parameters with the given ones over them, packed; None when nothing is said."""
    if not given:
        return None
    if unknown := set(given) - set(PARAMETERS):
        raise errors.InvalidRequest(f"Unknown session parameters: {', '.join(sorted(unknown))}.")
    before = {} if stored is None else jsonbytes.members(bodies.unpack(stored))
    merged = {name: raw for name, raw in (before | dict(given)).items() if raw.strip() != b"null"}
    return bodies.pack(b"{" + b",".join(b'"%s":%s' % (name.encode(), raw) for name, raw in merged.items()) + b"}")
