"""The tables of the operators' pages; a file of their own, like a drawer of the same chest (`store.tables`)."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Identity, Index, Integer, Numeric, Table, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB

from compaction.store.tables import metadata

audit_entries = Table(  # what people did by the dashboard; no foreign key: the log outlives whom it tells about
    "audit_entries",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant_id", BigInteger, nullable=False),  # whose things were touched; 0: those of all tenants
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("actor_tenant", Text, nullable=False),  # the tenant of the key
    Column("actor_key", Text, nullable=False),  # the key's public id
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False, server_default=text("''")),  # a job, a session, a filter in words
    Column("details", JSONB(none_as_null=True), nullable=False, server_default=text("'{}'::jsonb")),
    Column("done", Integer),  # how many were changed; None: it broke off
    Column("ended_at", DateTime(timezone=True)),
    Index("ix_audit_entries_tenant_id_id", "tenant_id", "id"),
    Index("ix_audit_entries_tenant_id_target_id", "tenant_id", "target", "id"),
)

job_tallies = Table(  # how jobs ended, counted once per period (store.tallies), so that nobody counts a million rows
    "job_tallies",
    metadata,
    Column("tenant_id", BigInteger, primary_key=True, autoincrement=False),  # 0: all tenants together
    Column("at", DateTime(timezone=True), primary_key=True),  # when the period begins
    Column("outcome", Text, primary_key=True),  # succeeded, skipped, failed, cancelled; counted: the period was
    Column("model", Text, primary_key=True),  # of the session
    Column("jobs", BigInteger, nullable=False),
    Column("pre_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("post_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("cost_usd", Numeric(14, 6), nullable=False, server_default=text("0")),
    Column("unpriced", BigInteger, nullable=False, server_default=text("0")),  # results whose cost nobody knows
)
