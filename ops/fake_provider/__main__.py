"""`python -m ops.fake_provider --port N --script FILE`: serves until SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from compaction.core import jsonbytes
from ops.fake_provider.script import ScriptProblem, script_from
from ops.fake_provider.server import FakeProvider


def main() -> int:
    """Exit code 0 after a clean stop, 2 for a script that is none."""
    parser = argparse.ArgumentParser(prog="python -m ops.fake_provider", description="A fake Messages API on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port; the URL is printed")
    parser.add_argument(
        "--script", type=Path, help="JSON: a list of steps, or an object with steps, limits and options"
    )
    parser.add_argument("--ledger", type=Path, help="append a line of JSON for each request to this file")
    told = parser.parse_args()
    try:
        script = script_from(jsonbytes.decode(told.script.read_bytes()) if told.script else None)
    except (ScriptProblem, ValueError, TypeError, OSError) as problem:
        print(f"{told.script}: {problem}", file=sys.stderr)
        return 2
    asyncio.run(_serve(FakeProvider(script, port=told.port, ledger=told.ledger)))
    return 0


async def _serve(fake: FakeProvider) -> None:
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    async with fake:
        print(fake.url, flush=True)
        await stopped.wait()


if __name__ == "__main__":
    sys.exit(main())
