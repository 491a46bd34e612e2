"""Add what fair dispatch, provider pauses, caps and retention need."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | None = None
depends_on: str | None = None

WAITING = "status = 'queued'"
READY = "status IN ('queued','retrying')"
NOW = sa.text("now()")
ZERO = sa.text("0")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("snoozes", sa.Integer(), server_default=ZERO, nullable=False))
    op.add_column("workers", sa.Column("provider", sa.Text()))
    op.create_index(
        "ix_jobs_fair", "jobs", ["tenant_id", "priority", "not_before", "id"], postgresql_where=sa.text(READY)
    )
    op.create_index("ix_jobs_waiting_id", "jobs", ["id"], postgresql_where=sa.text(WAITING))
    op.create_index("ix_jobs_waiting_tenant_id_id", "jobs", ["tenant_id", "id"], postgresql_where=sa.text(WAITING))
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    _create_provider_pauses()
    _create_queue_depths()


def downgrade() -> None:
    op.drop_table("queue_depths")
    op.drop_table("provider_pauses")
    op.drop_index("ix_idempotency_keys_created_at", "idempotency_keys")
    op.drop_index("ix_jobs_waiting_tenant_id_id", "jobs")
    op.drop_index("ix_jobs_waiting_id", "jobs")
    op.drop_index("ix_jobs_fair", "jobs")
    op.drop_column("workers", "provider")
    op.drop_column("jobs", "snoozes")


def _create_provider_pauses() -> None:
    op.create_table(
        "provider_pauses",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("trips", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("probes", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("probe_at", sa.DateTime(timezone=True)),
        sa.Column("paused_at", sa.DateTime(timezone=True)),
        sa.Column("changed_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("trial_token", sa.BigInteger()),
        sa.CheckConstraint("phase IN ('open','paused','trial')", name=op.f("ck_provider_pauses_phase")),
        sa.PrimaryKeyConstraint("provider", name="pk_provider_pauses"),
    )


def _create_queue_depths() -> None:
    op.create_table(
        "queue_depths",
        sa.Column("tenant_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("waiting", sa.BigInteger(), nullable=False),
        sa.Column("through_id", sa.UUID(), nullable=False),
        sa.Column("taken_per_second", sa.Double(), server_default=ZERO, nullable=False),
        sa.Column("last_token", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_queue_depths"),
    )
