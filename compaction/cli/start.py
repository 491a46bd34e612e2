"""Where the program `compactd` begins: Ctrl-C while its modules load ends it without a word, as it does later."""

from __future__ import annotations

import signal


def main() -> None:
    """Loads the program and runs it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from compaction.cli.main import main as program  # noqa: PLC0415 - loading takes half a second

    signal.signal(signal.SIGINT, signal.default_int_handler)
    program()


if __name__ == "__main__":
    main()
