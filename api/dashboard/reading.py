"""Reading over a tenant's wall: when the operator opens what another tenant's session says, the log says so."""

from __future__ import annotations

import hashlib

from api.dashboard.viewers import Viewer
from compaction.store import audit
from compaction.store.engine import Connection
from compaction.store.reach import Owner

ACTION = "words.read"
VISIT_CHARS = 12  # of a digest of the visit's token, which is a secret: 48 bits tell the visits of one key apart


async def noted(conn: Connection, viewer: Viewer, owner: Owner, target: str) -> None:
    """Writes down that words of another tenant's are shown, once per visit and target; of one's own nothing is noted.

    A page that renews itself asks again and again. That it does so is not asked of the request's headers: whoever reads
    could send them at once, and nothing would be noted.
    """
    if not viewer.reads_words or owner.tenant_id == viewer.principal.tenant_id:
        return
    visit = hashlib.sha256(viewer.csrf.encode()).hexdigest()[:VISIT_CHARS]
    if await audit.is_noted(conn, viewer.principal, ACTION, target, tenant_id=owner.tenant_id, visit=visit):
        return
    entry = await audit.begin(
        conn, viewer.principal, ACTION, target, tenant_id=owner.tenant_id, details={"visit": visit}
    )
    await audit.end(conn, entry, 0)
