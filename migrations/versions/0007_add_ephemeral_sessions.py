"""Add which sessions are ephemeral: an inline job brings its own, and it goes with its jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | None = None
depends_on: str | None = None

NAME = "ix_sessions_ephemeral"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("is_ephemeral", sa.Boolean(), nullable=False, server_default=sa.text("false")))
    op.create_index(NAME, "sessions", ["created_at"], postgresql_where=sa.text("is_ephemeral"))


def downgrade() -> None:
    op.drop_index(NAME, "sessions")
    op.drop_column("sessions", "is_ephemeral")
