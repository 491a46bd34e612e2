"""Add bulk runs: orders to compact many sessions anew, their sessions, and the batches that go to the model's API."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | None = None
depends_on: str | None = None

NOW = sa.text("now()")
NEW_ID = sa.text("uuidv7()")
EMPTY = sa.text("'{}'::jsonb")
ZERO = sa.text("0")
RUN_STATES = "state IN ('planning','ready','running','sampled','paused','cancelling','ended')"
ITEM_STATES = "state IN ('found','skipped','batched','queued','succeeded','failed','cancelled','expired')"


def upgrade() -> None:
    op.add_column("results", sa.Column("prompt_version", sa.Integer()))
    _create_runs()
    _create_batches()
    _create_items()


def downgrade() -> None:
    op.drop_table("bulk_items")
    op.drop_table("bulk_batches")
    op.drop_table("bulk_runs")
    op.drop_column("results", "prompt_version")


def _create_runs() -> None:
    op.create_table(
        "bulk_runs",
        sa.Column("id", sa.UUID(), server_default=NEW_ID, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'planning'"), nullable=False),
        sa.Column("resume_to", sa.Text()),
        sa.Column("dry_run", sa.Boolean(), nullable=False),
        sa.Column("selection", postgresql.JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("way", sa.Text(), nullable=False),
        sa.Column("way_note", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("strategy", sa.Text()),
        sa.Column("instructions", sa.Text()),
        sa.Column("force", sa.Boolean(), nullable=False),
        sa.Column("sample", sa.Integer()),
        sa.Column("max_usd", sa.Numeric(14, 6)),
        sa.Column("max_tokens", sa.BigInteger()),
        sa.Column("prompt_version", sa.Integer(), nullable=False),
        sa.Column("after_session_id", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("through_session_id", sa.BigInteger(), nullable=False),
        sa.Column("end_reason", sa.Text()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("planned_at", sa.DateTime(timezone=True)),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("stepped_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(RUN_STATES, name=op.f("ck_bulk_runs_state")),
        sa.CheckConstraint("way IN ('live','message_batches')", name=op.f("ck_bulk_runs_way")),
        sa.CheckConstraint("(state = 'ended') = (ended_at IS NOT NULL)", name=op.f("ck_bulk_runs_ended")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_bulk_runs_tenant_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_bulk_runs"),
    )
    op.create_index("ix_bulk_runs_tenant_id_id", "bulk_runs", ["tenant_id", "id"])
    op.create_index("ix_bulk_runs_active", "bulk_runs", ["id"], postgresql_where=sa.text("state <> 'ended'"))


def _create_batches() -> None:
    op.create_table(
        "bulk_batches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.UUID(), nullable=False),
        sa.Column("state", sa.Text(), server_default=sa.text("'intended'"), nullable=False),
        sa.Column("provider_id", sa.Text()),
        sa.Column("adopted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("requests", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("counts", postgresql.JSONB(), server_default=EMPTY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("state IN ('intended','sent','ended','void')", name=op.f("ck_bulk_batches_state")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_bulk_batches_tenant_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run_id"], ["bulk_runs.id"], name="fk_bulk_batches_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_bulk_batches"),
    )
    op.create_index("ix_bulk_batches_tenant_id_id", "bulk_batches", ["tenant_id", "id"])
    op.create_index("ix_bulk_batches_run_id_id", "bulk_batches", ["run_id", "id"])
    op.create_index(
        "uq_bulk_batches_provider_id",
        "bulk_batches",
        ["provider_id"],
        unique=True,
        postgresql_where=sa.text("state <> 'void'"),
    )


def _create_items() -> None:
    op.create_table(
        "bulk_items",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("run_id", sa.UUID(), nullable=False),
        sa.Column("session_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("covers_through_seq", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("live_usd", sa.Numeric(14, 6)),
        sa.Column("feeds", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("misses", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("job_id", sa.UUID()),
        sa.Column("batch_id", sa.BigInteger()),
        sa.Column("answers", sa.LargeBinary()),
        sa.Column("not_before", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("error_code", sa.Text()),
        sa.Column("strategy", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("pre_tokens", sa.BigInteger()),
        sa.Column("post_tokens", sa.BigInteger()),
        sa.Column("dropped", postgresql.JSONB()),
        sa.Column("used_tokens", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("cost_usd", sa.Numeric(14, 6), server_default=ZERO, nullable=False),
        sa.Column("seconds", sa.Double()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint(ITEM_STATES, name=op.f("ck_bulk_items_state")),
        sa.ForeignKeyConstraint(["run_id"], ["bulk_runs.id"], name="fk_bulk_items_run_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_bulk_items_session_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_bulk_items"),
        sa.UniqueConstraint("run_id", "session_id", name="uq_bulk_items_run_id_session_id"),
    )
    op.create_index("ix_bulk_items_run_id_state_id", "bulk_items", ["run_id", "state", "id"])
    op.create_index(
        "uq_bulk_items_job_id", "bulk_items", ["job_id"], unique=True, postgresql_where=sa.text("job_id IS NOT NULL")
    )
    op.create_index("ix_bulk_items_key", "bulk_items", ["session_id", "recipe", "content_hash"])
    op.create_index(
        "ix_bulk_items_batch_id", "bulk_items", ["batch_id"], postgresql_where=sa.text("batch_id IS NOT NULL")
    )
