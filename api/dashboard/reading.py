"""Reading over a tenant's wall: when the operator opens what another tenant's session says, the log says so."""

from __future__ import annotations

from api.dashboard.viewers import Viewer
from compaction.store import audit
from compaction.store.engine import Connection
from compaction.store.reach import Owner


async def noted(conn: Connection, viewer: Viewer, owner: Owner, target: str) -> None:
    """Writes down that words of another tenant's are shown; of one's own nothing is noted."""
    if not viewer.reads_words or owner.tenant_id == viewer.principal.tenant_id:
        return
    entry = await audit.begin(conn, viewer.principal, "words.read", target, tenant_id=owner.tenant_id)
    await audit.end(conn, entry, 0)
