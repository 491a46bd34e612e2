"""Tenants and their API keys. A key is `ck_<public id>_<secret>`; only a keyed hash of it is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import BigInteger, Text, bindparam, func, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.store import plain
from compaction.store.tables import api_keys, tenants

SCOPES = ("sessions:write", "jobs:write", "read", "ops", "admin")  # DESIGN §8
OPERATOR_TENANT = "default"  # of the bootstrap key: whoever runs the service, and alone sees over the tenants' walls
PUBLIC_ID_CHARS = 8  # 36^8: collisions are refused by the unique index and never happen in practice
SECRET_BYTES = 32  # 256 random bits need no slow hash; 43 characters of urlsafe base64
PRINT_CHARS = 16  # 64 bits of a hash of a hash: tells two secrets apart and helps nobody to find one
MAX_TENANT_CHARS = 200  # like session ids
_ALPHABET = string.ascii_lowercase + string.digits
_KEY = re.compile(r"ck_([a-z0-9]{8})_([A-Za-z0-9_-]{43})")
_NO_HASH = bytes(32)  # compared when there is no such key, so that the answer takes as long


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key. `key` is shown once and stored nowhere."""

    key: str = field(repr=False)
    public_id: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: the tenant that the key belongs to and what the key may do."""

    tenant_id: int
    tenant: str
    public_id: str
    scopes: frozenset[str]

    @property
    def is_operator(self) -> bool:
        """Whether the key is of the tenant that runs the service; what it may do still depends on its scopes."""
        return self.tenant == OPERATOR_TENANT


_TENANT = (
    upsert(tenants)
    .values(name=bindparam("b_name", type_=Text))
    .on_conflict_do_nothing(index_elements=["name"])
    .returning(tenants.c.id)
)
_TENANT_ID = select(tenants.c.id).where(tenants.c.name == bindparam("b_name", type_=Text))
_ISSUE = (
    upsert(api_keys)
    .values(
        tenant_id=bindparam("b_tenant_id", type_=BigInteger),
        public_id=bindparam("b_public_id", type_=Text),
        secret_hash=bindparam("b_hash", type_=api_keys.c.secret_hash.type),
        scopes=bindparam("b_scopes", type_=api_keys.c.scopes.type),
        expires_at=bindparam("b_expires_at", type_=api_keys.c.expires_at.type),
    )
    .on_conflict_do_update(  # the same public id again: the operator's own key with another secret or pepper
        index_elements=["public_id"],
        set_={
            "secret_hash": literal_column("excluded.secret_hash"),
            "scopes": literal_column("excluded.scopes"),
            "expires_at": literal_column("excluded.expires_at"),
        },
        where=api_keys.c.tenant_id == literal_column("excluded.tenant_id"),
    )
    .returning(api_keys.c.id)
)
_FIND = (
    select(
        api_keys.c.id,
        api_keys.c.secret_hash,
        api_keys.c.scopes,
        api_keys.c.tenant_id,
        tenants.c.name,
        or_(
            api_keys.c.last_used_at.is_(None),
            api_keys.c.last_used_at < func.now() - literal_column("interval '1 minute'"),
        ).label("stale"),
    )
    .join(tenants, tenants.c.id == api_keys.c.tenant_id)
    .where(
        api_keys.c.public_id == bindparam("b_public_id", type_=Text),
        or_(api_keys.c.revoked_at.is_(None), api_keys.c.revoked_at > func.now()),
        or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
    )
)
_TOUCH = update(api_keys).where(api_keys.c.id == bindparam("b_id", type_=BigInteger)).values(last_used_at=func.now())


async def ensure_tenant(conn: AsyncConnection, name: str) -> int:
    """The id of the tenant of that name, made if it is new. Raises errors.InvalidRequest for an impossible name."""
    if not 0 < len(name) <= MAX_TENANT_CHARS:
        raise errors.InvalidRequest(f"A tenant's name has 1 to {MAX_TENANT_CHARS} characters.")
    named = {"b_name": plain.text("tenant", name)}
    made: int | None = (await conn.execute(_TENANT, named)).scalar_one_or_none()
    if made is not None:
        return made
    found: int = (await conn.execute(_TENANT_ID, named)).scalar_one()
    return found


async def create_key(  # noqa: PLR0913 - what a key is
    conn: AsyncConnection,
    tenant_id: int,
    scopes: Sequence[str],
    *,
    expires_at: datetime | None = None,
    pepper: str,
    key: str | None = None,
) -> IssuedKey:
    """A new key for the tenant; `key` gives its text (the operator's own), otherwise it is drawn at random.

    Raises errors.InvalidRequest for unknown scopes or a malformed key, errors.Conflict when another tenant has its
    public id. An existing key of the same tenant and public id is replaced.
    """
    if unknown := set(scopes) - set(SCOPES):
        raise errors.InvalidRequest(f"Unknown scopes: {len(unknown)}. Known are {', '.join(SCOPES)}.")
    text = _random_key() if key is None else key
    match = _KEY.fullmatch(text)
    if match is None:
        raise errors.InvalidRequest("A key is ck_, 8 characters of a-z0-9, _, and 43 of A-Za-z0-9_-.")
    public_id = match[1]
    issued = await conn.execute(
        _ISSUE,
        {
            "b_tenant_id": tenant_id,
            "b_public_id": public_id,
            "b_hash": _hash(text, pepper),
            "b_scopes": sorted(set(scopes)),
            "b_expires_at": expires_at,
        },
    )
    if issued.first() is None:
        raise errors.Conflict("Another tenant has a key with this public id.")
    return IssuedKey(text, public_id)


async def authenticate(conn: AsyncConnection, key_text: str, pepper: str) -> Principal | None:
    """Who the key belongs to; None for an unknown, expired or revoked one. Compares in constant time.

    A rotated key is one that will be revoked: it works until then.
    """
    match = _KEY.fullmatch(key_text)
    if match is None:
        return None
    row = (await conn.execute(_FIND, {"b_public_id": match[1]})).one_or_none()
    stored = _NO_HASH if row is None else row.secret_hash
    if not hmac.compare_digest(stored, _hash(key_text, pepper)) or row is None:
        return None
    if row.stale:
        await conn.execute(_TOUCH, {"b_id": row.id})
    return Principal(row.tenant_id, row.name, match[1], frozenset(row.scopes))


@dataclass(frozen=True, slots=True)
class Known:
    """A valid key that was shown before: who it belongs to, and a print of its secret, which a new secret changes."""

    principal: Principal
    print: str


async def recall(conn: AsyncConnection, public_id: str) -> Known | None:
    """The valid key of that public id, for those who have shown it already; None when it opens nothing any more."""
    row = (await conn.execute(_FIND, {"b_public_id": plain.text("key", public_id)})).one_or_none()
    if row is None:
        return None
    principal = Principal(row.tenant_id, row.name, public_id, frozenset(row.scopes))
    return Known(principal, hashlib.sha256(row.secret_hash).hexdigest()[:PRINT_CHARS])


async def bootstrap(conn: AsyncConnection, key_text: str, pepper: str) -> Principal:
    """Makes the operator's own key valid: tenant "default", all scopes. Idempotent; raises errors.InvalidRequest."""
    tenant_id = await ensure_tenant(conn, OPERATOR_TENANT)
    issued = await create_key(conn, tenant_id, SCOPES, pepper=pepper, key=key_text)
    return Principal(tenant_id, OPERATOR_TENANT, issued.public_id, frozenset(SCOPES))


def _random_key() -> str:
    public_id = "".join(secrets.choice(_ALPHABET) for _ in range(PUBLIC_ID_CHARS))
    return f"ck_{public_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _hash(key_text: str, pepper: str) -> bytes:
    return hmac.new(pepper.encode(), key_text.encode(), hashlib.sha256).digest()
