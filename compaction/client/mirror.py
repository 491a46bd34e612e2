"""A session kept in step with an agent's list: what is new is stored, and where the list moved, a new session begins.

The list is the truth. Nothing is appended to a session before it has been seen that what it holds is the list's
beginning; until then each call looks again, so an answer that was lost changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from compaction.client import loop_turns
from compaction.client.client import Client
from compaction.client.errors import Stale
from compaction.client.hashing import prefix_hashes
from compaction.client.shapes import SessionFields, StoredSession
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

BATCH_BYTES = 8 * 2**20  # of one append; far below the API's limit of 64 MiB
MARK_CHARS = 12  # of a hash in a new session's name: no two lists of one agent share them
MAX_NAME_CHARS = 180  # of the first session's name in it; DESIGN §8 allows 200
MAX_MOVES = 3  # the session itself, the one named by the list, and one that nobody can have written to

Turn = dict[str, Any]


class Mirror:
    """The session that holds the list; `session_id` changes where the list was rewound or somebody else wrote.

    `live_job_id` is the job whose result the list begins with, `untaken_job_id` one whose result the list could be
    swapped for when it was found. `added_bytes` counts what was stored since the reader last set it to 0.
    """

    def __init__(self, client: Client, session_id: str, fields: SessionFields) -> None:
        self.session_id = session_id
        self.live_job_id: str | None = None
        self.untaken_job_id: str | None = None
        self.added_bytes = 0
        self._client = client
        self._name = session_id
        self._fields = fields
        self._hashes: list[str] = []  # of what the session holds of the list
        self._in_step = False  # whether it was seen that it holds them and nothing else

    async def load(self) -> list[Turn]:
        """What the session holds, ready to send; the list begins with it. Raises Unreachable and Refused."""
        stored = await self._open()
        held = await self._client.messages(self.session_id, "api")
        self.holds(held)
        self.live_job_id = stored["live_job_id"]
        return held

    def holds(self, turns: Sequence[Turn]) -> None:
        """From now on the session holds just these turns of the list: it was loaded, or a result was taken over."""
        self._hashes, self._in_step = prefix_hashes(turns), True

    async def store(self, turns: Sequence[Turn], hashes: Sequence[str], reply: object) -> None:
        """Brings the session in step with the list. Raises Unreachable and Refused; what was not stored is, later."""
        if self._in_step and self._hashes != list(hashes[: len(self._hashes)]):
            self.leave(hashes)
        for _ in range(MAX_MOVES):
            if self._in_step:
                break
            await self._settle(turns, hashes)
        known = len(self._hashes)
        for batch in _batches(_envelopes(turns, hashes, known, loop_turns.response_fields(reply))):
            self._in_step = False  # until it is answered: nobody knows whether a lost one was stored
            await self._client.append(self.session_id, batch)
            self._in_step = True
            self._hashes = list(hashes[: len(self._hashes) + len(batch)])
            self.added_bytes += sum(len(jsonbytes.encode(message["content"])) for message in batch)

    def leave(self, hashes: Sequence[str]) -> None:
        """Goes on in a new session at the next `store`: the list is no longer what this one holds."""
        named = self._named((hashes[-1] if hashes else uuid4().hex)[:MARK_CHARS])
        self.session_id = named if named != self.session_id else self._named(uuid4().hex[:MARK_CHARS])
        self.live_job_id = self.untaken_job_id = None
        self._hashes, self._in_step, self.added_bytes = [], False, 0

    def _named(self, mark: str) -> str:
        return f"{self._name[:MAX_NAME_CHARS]}.{mark}"

    async def _settle(self, turns: Sequence[Turn], hashes: Sequence[str]) -> None:
        """In step with the session when it is empty or holds the list's beginning; else in a new one."""
        stored = await self._open()
        if not stored["head_seq"] or await self._recognised(stored, turns, hashes):
            self._in_step = True
        else:
            self.leave(hashes)

    async def _open(self) -> StoredSession:
        """The session, made or brought up to date."""
        stored = await self._client.put_session(self.session_id, **self._fields)
        self._fields.setdefault("model", stored["model"])
        return stored

    async def _recognised(self, session: StoredSession, turns: Sequence[Turn], hashes: Sequence[str]) -> bool:
        """Whether the session's messages are the list's beginning, in one of the ways to hold them."""
        for view in ("live", "api"):
            held = await self._client.messages(self.session_id, "live" if view == "live" else "api")
            stored = prefix_hashes(loop_turns.turns([one for one in held if one["role"] in loop_turns.ROLES]))
            if stored == list(hashes[: len(stored)]):
                self._hashes, self.live_job_id = stored, session["live_job_id"]
                return True
        return await self._not_taken_over(session["live_job_id"], turns, hashes)

    async def _not_taken_over(self, job_id: str | None, turns: Sequence[Turn], hashes: Sequence[str]) -> bool:
        """Whether the list is what the session's newest result replaces, with what came later: it is taken over then.

        So it is when the loop's process died between the end of a job and the next call.
        """
        if job_id is None or not hashes:
            return False
        covered = len(hashes)
        try:
            try:
                applied = await self._client.apply_hash(job_id, hashes[-1], hashes)
            except Stale as stale:
                if not stale.only_longer or stale.length is None:
                    return False
                covered = stale.length
                applied = await self._client.apply_hash(job_id, hashes[covered - 1])
        except Stale:  # moved between the two
            return False
        tail = loop_turns.turns(applied["messages"])
        if tail != turns[covered : covered + len(tail)]:
            return False
        self._hashes, self.untaken_job_id = list(hashes[: covered + len(tail)]), job_id
        return True


def _envelopes(
    turns: Sequence[Turn], hashes: Sequence[str], known: int, response: Mapping[str, Json]
) -> list[dict[str, Json]]:
    """What is new as it is stored. A uuid says what stands before it too, so storing it again changes nothing."""
    new = [turn | {"uuid": str(UUID(digest[:32]))} for turn, digest in zip(turns, hashes, strict=True)][known:]
    said = [message for message in new if message["role"] == "assistant"]
    if said and response:
        said[-1] |= response
    if known and said:  # what was there before this loop began was not said now
        said[-1] |= {"created_at": datetime.now(UTC).isoformat()}
    return new


def _batches(messages: Sequence[dict[str, Json]]) -> list[list[dict[str, Json]]]:
    """The messages in batches of about BATCH_BYTES, each with at least one."""
    batches: list[list[dict[str, Json]]] = []
    size = BATCH_BYTES
    for message in messages:
        size += len(jsonbytes.encode(message))
        if size >= BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(message)
    return batches
