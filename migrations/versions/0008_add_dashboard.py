"""Add what the dashboard stands on: the audit log, counts of how jobs ended, and indexes over all tenants' jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | None = None
depends_on: str | None = None

NOW = sa.text("now()")
ZERO = sa.text("0")
UNHAPPY = sa.text("status IN ('failed','cancelled') AND ended_at IS NOT NULL")
CODE = sa.text("(error ->> 'code')")


# `jobs` is a table that live traffic writes: its indexes are built beside it, outside of a transaction.
JOBS_INDEXES: tuple[tuple[str, list[str | sa.TextClause], sa.TextClause], ...] = (
    ("ix_jobs_ended_at", ["ended_at"], sa.text("ended_at IS NOT NULL")),
    ("ix_jobs_unhappy", ["status", "id"], UNHAPPY),
    ("ix_jobs_code_id", [CODE, "id"], sa.text("error IS NOT NULL")),
)


def upgrade() -> None:
    """The indexes first, what broke off anew; then the tables in one transaction with the revision's mark."""
    with op.get_context().autocommit_block():
        for name, columns, where in JOBS_INDEXES:
            op.drop_index(name, "jobs", if_exists=True, postgresql_concurrently=True)
            op.create_index(name, "jobs", columns, postgresql_where=where, postgresql_concurrently=True)
    _create_audit_entries()
    _create_job_tallies()


def downgrade() -> None:
    with op.get_context().autocommit_block():
        for name, _, _ in reversed(JOBS_INDEXES):
            op.drop_index(name, "jobs", if_exists=True, postgresql_concurrently=True)
    op.drop_table("job_tallies")
    op.drop_table("audit_entries")


def _create_audit_entries() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("actor_tenant", sa.Text(), nullable=False),
        sa.Column("actor_key", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("details", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("done", sa.Integer()),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_audit_entries"),
    )
    op.create_index("ix_audit_entries_tenant_id_id", "audit_entries", ["tenant_id", "id"])
    op.create_index("ix_audit_entries_tenant_id_target_id", "audit_entries", ["tenant_id", "target", "id"])


def _create_job_tallies() -> None:
    op.create_table(
        "job_tallies",
        sa.Column("tenant_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("pre_tokens", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("post_tokens", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("cost_usd", sa.Numeric(14, 6), server_default=ZERO, nullable=False),
        sa.Column("unpriced", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "at", "outcome", "model", name="pk_job_tallies"),
    )
