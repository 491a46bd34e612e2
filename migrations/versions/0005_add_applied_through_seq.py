"""Add how far a producer's copy went when it took a result over: its next prefix hash is told by it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.add_column("results", sa.Column("applied_through_seq", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("results", "applied_through_seq")
