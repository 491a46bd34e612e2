"""An archive's sessions on their way into the service: a few at a time, and what could not be taken in words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from compaction.cli import failures
from compaction.cli.archive import Piece, pieces
from compaction.client import Client, ClientError, Unreachable

AT_ONCE = 4  # imports under way: the server reads one file per thread, and more would only queue there
MAX_PROBLEMS = 20  # told one by one; beyond, the archive as a whole is not what it was taken for


@dataclass(slots=True)
class Sent:
    """What was imported, and what was not."""

    session_ids: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    failed: int = 0

    def note(self, problem: str) -> None:
        """A piece that was not imported."""
        self.failed += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


async def send(client: Client, source: str, scratch: Path, tell: Callable[[int], None]) -> Sent:
    """Imports every session of the archive. Raises ArchiveProblem, or Unreachable when the API goes away."""
    sent, found = Sent(), pieces(source, scratch)
    under_way: set[asyncio.Task[None]] = set()
    try:
        while (piece := await asyncio.to_thread(_next, found)) is not None:
            under_way.add(asyncio.create_task(_send(client, piece, sent)))
            if len(under_way) >= AT_ONCE:
                under_way = await _settled(under_way, asyncio.FIRST_COMPLETED)
            tell(len(sent.session_ids))
        await _settled(under_way, asyncio.ALL_COMPLETED)
    finally:
        for task in under_way:
            task.cancel()
    sent.session_ids = list(dict.fromkeys(sent.session_ids))
    return sent


async def _settled(under_way: set[asyncio.Task[None]], when: str) -> set[asyncio.Task[None]]:
    if not under_way:
        return under_way
    done, left = await asyncio.wait(under_way, return_when=when)
    for task in done:
        task.result()
    return left


async def _send(client: Client, piece: Piece, sent: Sent) -> None:
    if piece.problem is not None:
        sent.note(piece.problem)
        return
    try:
        imported = await client.import_transcript(piece.path, session_id=piece.session_id)
        sent.session_ids.append(imported["session_id"])
    except Unreachable:
        raise  # the others would fare no better
    except (ClientError, OSError) as error:
        told = failures.told(error)
        sent.note(f"{piece.label}: {told.words if told else type(error).__name__}")
    finally:
        piece.forget()


def _next(found: Iterator[Piece]) -> Piece | None:
    return next(found, None)
