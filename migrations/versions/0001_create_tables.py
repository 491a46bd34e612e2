"""Create the tables: tenants and keys, sessions and messages, jobs and what hangs on them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None

READY = "status IN ('queued','retrying')"
TABLES = (  # in the order in which they can be dropped
    "session_state",
    "workers",
    "idempotency_keys",
    "breakers",
    "results",
    "job_events",
    "attempts",
    "jobs",
    "messages",
    "sessions",
    "api_keys",
    "tenants",
)


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("lease_tokens")))
    _create_tenants()
    _create_api_keys()
    _create_sessions()
    _create_messages()
    _create_jobs()
    _index_jobs()
    _create_attempts()
    _create_job_events()
    _create_results()
    _create_breakers()
    _create_idempotency_keys()
    _create_workers()
    _create_session_state()


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    op.execute(sa.schema.DropSequence(sa.Sequence("lease_tokens")))


def _id() -> sa.Column[Any]:
    return sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False)


def _at(name: str, *, set_now: bool = False) -> sa.Column[Any]:
    now = sa.text("now()") if set_now else None
    return sa.Column(name, sa.DateTime(timezone=True), server_default=now, nullable=not set_now)


def _jsonb(name: str, *, required: bool = False, default: bool = False) -> sa.Column[Any]:
    empty = sa.text("'{}'::jsonb") if default else None
    return sa.Column(name, postgresql.JSONB(), server_default=empty, nullable=not required)


def _owner(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _create_tenants() -> None:
    op.create_table(
        "tenants",
        _id(),
        sa.Column("name", sa.Text(), nullable=False),
        _at("created_at", set_now=True),
        sa.PrimaryKeyConstraint("id", name="pk_tenants"),
        sa.UniqueConstraint("name", name="uq_tenants_name"),
    )


def _create_api_keys() -> None:
    op.create_table(
        "api_keys",
        _id(),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        _at("created_at", set_now=True),
        _at("expires_at"),
        _at("last_used_at"),
        _at("revoked_at"),
        _owner("api_keys", "tenant_id", "tenants.id"),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("public_id", name="uq_api_keys_public_id"),
    )
    op.create_index("ix_api_keys_tenant_id", "api_keys", ["tenant_id"])


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        _id(),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("query_source", sa.Text()),
        sa.Column("parameters", sa.LargeBinary()),
        _jsonb("settings", required=True, default=True),
        sa.Column("head_seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("boundary_seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("live_job_id", sa.UUID()),
        _at("created_at", set_now=True),
        _at("updated_at", set_now=True),
        _owner("sessions", "tenant_id", "tenants.id"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("tenant_id", "name", name="uq_sessions_tenant_id_name"),
    )


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("session_id", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("uuid", sa.Text()),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("partial", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("starts_live", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("body_bytes", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        _at("stored_at", set_now=True),
        _owner("messages", "session_id", "sessions.id"),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_messages"),
    )
    op.create_index(
        "uq_messages_session_id_uuid",
        "messages",
        ["session_id", "uuid"],
        unique=True,
        postgresql_where=sa.text("uuid IS NOT NULL"),
    )
    op.create_index(
        "ix_messages_starts_live", "messages", ["session_id", "seq"], postgresql_where=sa.text("starts_live")
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.UUID(), server_default=sa.text("uuidv7()"), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("session_id", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'queued'"), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("scope_kind", sa.Text(), server_default=sa.text("'full'"), nullable=False),
        sa.Column("scope_uuid", sa.Text()),
        sa.Column("instructions", sa.Text()),
        sa.Column("strategy", sa.Text()),
        sa.Column("fallback", sa.Text()),
        sa.Column("force", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("token_gap", sa.BigInteger()),
        _jsonb("metadata", required=True, default=True),
        sa.Column("priority", sa.SmallInteger(), nullable=False),
        _at("not_before", set_now=True),
        _at("deadline_at"),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("crashes", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("model_calls", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("coalesced", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_token", sa.BigInteger()),
        sa.Column("lease_owner", sa.Text()),
        _at("lease_expires_at"),
        _at("dispatched_at"),
        _at("cancel_requested_at"),
        sa.Column("covers_through_seq", sa.BigInteger()),
        _jsonb("progress", required=True, default=True),
        sa.Column("paid_summary", sa.LargeBinary()),
        sa.Column("was_compacted", sa.Boolean()),
        sa.Column("reason", sa.Text()),
        _jsonb("error"),
        sa.Column("traceparent", sa.Text()),
        _at("created_at", set_now=True),
        _at("started_at"),
        _at("ended_at"),
        *_job_constraints(),
        postgresql_with={
            "fillfactor": 85,
            "autovacuum_vacuum_scale_factor": 0.01,
            "autovacuum_analyze_scale_factor": 0.02,
        },
    )


def _job_constraints() -> tuple[sa.Constraint, ...]:
    ended = "(status IN ('succeeded','failed','cancelled')) = (ended_at IS NOT NULL)"
    statuses = "status IN ('queued','running','retrying','succeeded','failed','cancelled')"
    return (
        sa.CheckConstraint("(status = 'running') = (lease_token IS NOT NULL)", name=op.f("ck_jobs_lease")),
        sa.CheckConstraint(ended, name=op.f("ck_jobs_ended")),
        sa.CheckConstraint(statuses, name=op.f("ck_jobs_status")),
        sa.CheckConstraint("trigger IN ('auto','manual','reactive','bulk')", name=op.f("ck_jobs_trigger")),
        sa.CheckConstraint("scope_kind IN ('full','up_to','from')", name=op.f("ck_jobs_scope_kind")),
        _owner("jobs", "tenant_id", "tenants.id"),
        _owner("jobs", "session_id", "sessions.id"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )


def _index_jobs() -> None:
    def index(name: str, columns: list[Any], where: str | None = None, *, unique: bool = False) -> None:
        condition = None if where is None else sa.text(where)
        op.create_index(name, "jobs", columns, unique=unique, postgresql_where=condition)

    index("uq_jobs_waiting", ["session_id"], "status = 'queued'", unique=True)
    index("uq_jobs_active", ["session_id"], "status IN ('running','retrying')", unique=True)
    index("ix_jobs_ready", ["priority", "not_before", "id"], READY)
    index("ix_jobs_deadline", ["deadline_at"], READY)
    index("uq_jobs_lease_token", ["lease_token"], "status = 'running'", unique=True)
    index("ix_jobs_tenant_id_id", ["tenant_id", "id"])
    index("ix_jobs_tenant_id_status_id", ["tenant_id", "status", "id"])
    index("ix_jobs_error_code", ["tenant_id", sa.text("(error ->> 'code')"), "id"], "error IS NOT NULL")
    index("ix_jobs_session_id_id", ["session_id", "id"])


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        _at("started_at", set_now=True),
        _at("ended_at"),
        sa.Column("outcome", sa.Text()),
        _jsonb("error"),
        _jsonb("usage"),
        _owner("attempts", "job_id", "jobs.id"),
        sa.PrimaryKeyConstraint("job_id", "lease_token", name="pk_attempts"),
    )


def _create_job_events() -> None:
    op.create_table(
        "job_events",
        _id(),
        sa.Column("job_id", sa.UUID(), nullable=False),
        _at("at", set_now=True),
        sa.Column("type", sa.Text(), nullable=False),
        _jsonb("data", required=True, default=True),
        _owner("job_events", "job_id", "jobs.id"),
        sa.PrimaryKeyConstraint("id", name="pk_job_events"),
    )
    op.create_index("ix_job_events_job_id_id", "job_events", ["job_id", "id"])


def _create_results() -> None:
    op.create_table(
        "results",
        sa.Column("job_id", sa.UUID(), nullable=False),
        sa.Column("session_id", sa.BigInteger(), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("model", sa.Text()),
        sa.Column("pre_tokens", sa.BigInteger(), nullable=False),
        sa.Column("post_tokens", sa.BigInteger(), nullable=False),
        _jsonb("usage", required=True),
        sa.Column("cost_usd", sa.Numeric(14, 6)),
        sa.Column("ptl_attempts", sa.Integer(), nullable=False),
        _jsonb("dropped", required=True),
        _jsonb("context_management"),
        sa.Column("covers_through_seq", sa.BigInteger(), nullable=False),
        sa.Column("prefix_hash", sa.Text(), nullable=False),
        sa.Column("degraded", sa.Boolean(), nullable=False),
        _jsonb("hook_results", required=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        _at("created_at", set_now=True),
        _at("applied_at"),
        _owner("results", "job_id", "jobs.id"),
        _owner("results", "session_id", "sessions.id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_results"),
    )
    op.create_index("ix_results_session_id", "results", ["session_id"])


def _create_breakers() -> None:
    op.create_table(
        "breakers",
        sa.Column("session_id", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        _at("opened_at"),
        sa.Column("last_error_code", sa.Text()),
        _at("updated_at", set_now=True),
        _owner("breakers", "session_id", "sessions.id"),
        sa.PrimaryKeyConstraint("session_id", name="pk_breakers"),
    )
    op.create_index("ix_breakers_open", "breakers", ["opened_at"], postgresql_where=sa.text("opened_at IS NOT NULL"))


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("response", sa.LargeBinary()),
        _at("created_at", set_now=True),
        _owner("idempotency_keys", "tenant_id", "tenants.id"),
        sa.PrimaryKeyConstraint("tenant_id", "key", name="pk_idempotency_keys"),
    )


def _create_workers() -> None:
    op.create_table(
        "workers",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("running", sa.Integer(), nullable=False),
        sa.Column("loop_lag_seconds", sa.Numeric(10, 4), nullable=False),
        sa.Column("draining", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        _at("started_at", set_now=True),
        _at("beat_at", set_now=True),
        sa.PrimaryKeyConstraint("owner", name="pk_workers"),
    )
    op.create_index("ix_workers_beat_at", "workers", ["beat_at"])


def _create_session_state() -> None:
    op.create_table(
        "session_state",
        sa.Column("session_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        _at("updated_at", set_now=True),
        _owner("session_state", "session_id", "sessions.id"),
        sa.PrimaryKeyConstraint("session_id", "kind", "key", name="pk_session_state"),
    )
