"""Do the migrations lead to the tables that the code describes? Upgrades an empty database and asks Alembic."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ops.embedded import Postgres
from ops.embedded.databases import alembic
from ops.embedded.errors import LocalError


def main() -> int:
    """0 if they do, 1 with Alembic's words if not."""
    with tempfile.TemporaryDirectory(prefix="compactd-drift-") as folder:
        log = Path(folder) / "alembic.log"
        server = Postgres(Path(folder) / "postgres", durable=False)
        try:
            server.start()
            alembic(server.sqlalchemy_url(), log, "upgrade", "head")
            alembic(server.sqlalchemy_url(), log, "check")
        except LocalError as problem:
            print(problem, file=sys.stderr)
            return 1
        finally:
            server.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
