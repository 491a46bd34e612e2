"""Add the table of HTTP hooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "hooks",
        sa.Column("id", postgresql.UUID(as_uuid=False), server_default=sa.text("uuidv7()"), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("timeout_s", sa.Double(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("event IN ('pre_compact','session_start')", name=op.f("ck_hooks_event")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_hooks_tenant_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_hooks"),
    )
    op.create_index("ix_hooks_tenant_id_id", "hooks", ["tenant_id", "id"])


def downgrade() -> None:
    op.drop_table("hooks")
