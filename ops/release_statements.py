"""Records what this release asks of the database: `make record-release` writes it beside the upgrade tests.

The next release's migrations are held to it: every recorded statement must still be understood by the newest schema,
and every recorded column must still be there, taking what it took. Statements are those that stand as constants in
`compaction.store`; lists with filters add conditions on the same columns.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import compaction.store
from compaction import __version__
from compaction.store import migrate, recording

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "integration" / "upgrade"


def path_of(version: str) -> Path:
    """Where a release's recording stands."""
    return FOLDER / f"release_{version.replace('.', '_')}.sql"


def statements() -> Iterator[tuple[str, str]]:
    """Every constant statement of the store with its name, `module.NAME`."""
    for found in pkgutil.iter_modules(compaction.store.__path__):
        module = importlib.import_module(f"compaction.store.{found.name}")
        yield from ((f"{found.name}.{name}", text) for name, text in recording.statements_in(module))


def main() -> int:
    """Writes the recording of the code as it is."""
    (head,) = migrate.heads()
    lines = [f"-- What release {__version__} asks of the database (make record-release).", f"-- revision: {head}"]
    lines += [f"-- column: {column}" for column in recording.columns()]
    lines += [f"\n-- statement: {name}\n{text};" for name, text in statements()]
    path_of(__version__).write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{path_of(__version__).relative_to(ROOT)}: {sum(1 for _ in statements())} statements")
    return 0


if __name__ == "__main__":
    sys.exit(main())
