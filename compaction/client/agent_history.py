"""Keeps an agent's history small while the agent goes on: one call in its loop.

    history = AgentHistory(client, "agent-7", model="claude-sonnet-5-5")
    while True:
        messages = await history.keep(messages, reply)
        reply = await claude.messages.create(messages=messages, …, **history.request_options)
        messages.append({"role": "assistant", "content": reply.content})
        …

`keep` stores what is new, asks for a compaction once the session is near its mark, looks whether an asked one has
ended, and then gives the smaller list with all that was said meanwhile. It waits only when nothing more fits.

The loop's list is the truth. Where it was rewound or edited, and where somebody else wrote into the session, the
history goes on in a new session that begins with the list; nothing of the old one is lost. While the service is away
the loop goes on with what it has, and what was not stored is stored later.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal, Unpack
from uuid import UUID, uuid4

from compaction.client import loop_turns
from compaction.client.client import Client
from compaction.client.errors import ContextFull, Refused, Stale, TimedOut, Unreachable
from compaction.client.hashing import prefix_hashes
from compaction.client.http import is_passing
from compaction.client.shapes import Job, Result, Session, SessionFields, StoredSession, Trigger
from compaction.core import jsonbytes
from compaction.core.context_edits import BETA
from compaction.core.jsonbytes import Json

PATIENCE_SECONDS = (
    10.0  # for what a call does beside the model's own seconds; what is not done then is done at the next
)
FULL_SECONDS = 600.0  # for a compaction while nothing more fits: five attempts of a model that thinks long
ASK_AGAIN_SECONDS = 60.0  # after a compaction that came to nothing; a breaker opens after three of them
BATCH_BYTES = 8 * 2**20  # of one append; far below the API's limit of 64 MiB
MARK_CHARS = 12  # of a hash in a new session's name: no two lists of one agent share them
MAX_NAME_CHARS = 180  # of the first session's name in it; DESIGN §8 allows 200

AskAt = Literal["warning", "auto"]
Turn = dict[str, Any]


class AgentHistory:
    """One agent's history, kept by its loop; one call at a time.

    `session_id` names the session now (it changes where the list was rewound), `last_result` is the newest one that was
    taken over, `context_management` what requests must carry while old tool results are cleared by the API itself (see
    docs/compaction.md), `trouble` what kept the last call from its work, if anything did.
    """

    def __init__(
        self,
        client: Client,
        session_id: str,
        *,
        ask_at: AskAt = "auto",
        patience_seconds: float = PATIENCE_SECONDS,
        full_seconds: float = FULL_SECONDS,
        **fields: Unpack[SessionFields],
    ) -> None:
        """`fields` are the session's: model, system, tools …; model must be given unless the session is there.

        `ask_at`: ask at the mark of automatic compaction, or earlier, at the warning, with a manual job.
        """
        self.session_id = session_id
        self.last_result: Result | None = None
        self.context_management: Json = None
        self.trouble: Exception | None = None
        self._client = client
        self._name = session_id
        self._fields = fields
        self._ask_at: AskAt = ask_at
        self._patience_seconds = patience_seconds
        self._full_seconds = full_seconds
        self._opened = False
        self._hashes: list[str] = []  # of what the session holds of the loop's list
        self._job_id: str | None = None
        self._quiet_until = 0.0
        self._unseen_bytes = 0  # added since the session was looked at; no token has less than a byte
        self._room: int | None = None  # tokens to the mark when it was; None: look again

    @property
    def request_options(self) -> dict[str, Any]:
        """What the SDK's `messages.create` must be given beside the messages: the edit that the API carries out."""
        if self.context_management is None:
            return {}
        return {
            "extra_body": {"context_management": self.context_management},
            "extra_headers": {"anthropic-beta": BETA},
        }

    async def load(self) -> list[Turn]:
        """The history as the service has it, ready to send: where an agent begins that kept no list. [] for a new one.

        Raises Unreachable and Refused.
        """
        await self._open()
        held = await self._client.messages(self.session_id, "api")
        self._hashes = prefix_hashes(held)
        return held

    async def keep(self, messages: Sequence[Mapping[str, Any]], reply: object = None) -> list[Any]:
        """The list to send to the model now: the given one, or a smaller one in its place. Go on with what comes back.

        `messages` are the loop's, {role, content}, the SDK's blocks among them; `reply` is the model's newest response:
        its usage makes the count of tokens exact. Raises ContextFull when nothing more fits and no compaction helped,
        Refused when the API does not take what is given, ValueError for messages that are none.
        """
        turns = await asyncio.to_thread(loop_turns.turns, messages)
        hashes = await asyncio.to_thread(prefix_hashes, turns)
        self.trouble = None
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._store(turns, hashes, reply)
                smaller = await self._taken(turns)
                is_full = smaller is None and await self._ask(turns)
            if is_full:
                smaller = await self._made_room(turns)
        except (Unreachable, TimeoutError) as error:
            self.trouble = error
            return list(messages)
        except Refused as error:
            if not (is_passing(error) or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR):
                raise  # what was given is wrong, and would be at each call
            self.trouble = error
            return list(messages)
        return list(messages) if smaller is None else smaller

    async def _open(self) -> StoredSession:
        """The session, made or brought up to date."""
        stored = await self._client.put_session(self.session_id, **self._fields)
        self._fields.setdefault("model", stored["model"])
        self._opened = True
        return stored

    async def _store(self, turns: Sequence[Turn], hashes: Sequence[str], reply: object) -> None:
        """Brings the session in step with the list."""
        if not self._opened:
            stored = await self._open()
            if stored["head_seq"] and not await self._recognised(stored, turns, hashes):
                await self._branch(hashes)
        elif self._hashes != hashes[: len(self._hashes)]:
            await self._branch(hashes)
        known = len(self._hashes)
        for batch in _batches(_envelopes(turns, hashes, known, loop_turns.response_fields(reply))):
            await self._client.append(self.session_id, batch)
            self._hashes = list(hashes[: len(self._hashes) + len(batch)])
            self._unseen_bytes += sum(len(jsonbytes.encode(message["content"])) for message in batch)

    async def _recognised(self, session: StoredSession, turns: Sequence[Turn], hashes: Sequence[str]) -> bool:
        """Whether the session's messages are the list's beginning, in one of the ways to hold them."""
        for view in ("live", "api"):
            held = await self._client.messages(self.session_id, "live" if view == "live" else "api")
            stored = prefix_hashes(loop_turns.turns([one for one in held if one["role"] in loop_turns.ROLES]))
            if stored == hashes[: len(stored)]:
                self._hashes = stored
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
            applied = await self._client.apply_hash(job_id, hashes[-1], hashes)
        except Stale as stale:
            if not stale.only_longer or stale.length is None:
                return False
            covered = stale.length
            applied = await self._client.apply_hash(job_id, hashes[covered - 1])
        tail = loop_turns.turns(applied["messages"])
        if tail != turns[covered : covered + len(tail)]:
            return False
        self._hashes, self._job_id = list(hashes[: covered + len(tail)]), job_id
        return True

    async def _branch(self, hashes: Sequence[str]) -> None:
        """Goes on in a new session: the list is no longer what this one holds."""
        abandoned, self._job_id = self._job_id, None
        mark = (hashes[-1] if hashes else uuid4().hex)[:MARK_CHARS]
        self.session_id = f"{self._name[:MAX_NAME_CHARS]}.{mark}"
        self._opened, self._hashes, self._unseen_bytes, self._room = False, [], 0, None
        self.context_management = None
        await self._open()
        if abandoned is not None:
            with contextlib.suppress(Refused):  # it has ended
                await self._client.cancel(abandoned)

    async def _taken(self, turns: Sequence[Turn]) -> list[Turn] | None:
        """The smaller list once an asked compaction has ended; None while there is none."""
        if self._job_id is None:
            return None
        job = await self._client.job(self._job_id)
        return await self._swapped(job, turns) if job["done"] else None

    async def _swapped(self, job: Job, turns: Sequence[Turn]) -> list[Turn] | None:
        """Takes over the result of a job that has ended, if it has one and it is of this list."""
        if job["status"] != "succeeded" or not job["was_compacted"]:
            self._job_id, self._room = None, None
            self._quiet_until = time.monotonic() + ASK_AGAIN_SECONDS
            return None
        result = await self._client.result(job["id"])
        smaller: list[Turn] | None = None
        if result["context_management"] is None:
            try:
                smaller = (await self._client.apply(job["id"], turns))["api_messages"]
            except Stale:
                self._job_id = None
                hashes = prefix_hashes(turns)
                await self._branch(hashes)
                await self._store(turns, hashes, None)
                return None
            self._hashes = prefix_hashes(smaller)
        self.context_management, self.last_result = result["context_management"], result
        self._job_id, self._room = None, None
        return smaller

    async def _ask(self, turns: Sequence[Turn]) -> bool:
        """Asks for a compaction where the session is near its mark; whether nothing more fits."""
        if self._room is not None and self._unseen_bytes < self._room:
            return False
        session = await self._client.session(self.session_id)
        self._unseen_bytes, self._room = 0, _mark(session, self._ask_at) - session["state"]["tokens"]
        is_full = session["state"]["level"] == "blocked"
        due = self._room <= 0 and (is_full or time.monotonic() >= self._quiet_until)
        if due and self._job_id is None and turns:
            trigger: Trigger = "auto" if self._ask_at == "auto" and not is_full else "manual"
            self._job_id = (await self._client.enqueue(self.session_id, trigger=trigger))["id"]
        return is_full

    async def _made_room(self, turns: Sequence[Turn]) -> list[Turn] | None:
        """Waits for a compaction, the one under way or a manual one after it. Raises ContextFull."""
        reason = "unknown"
        for _ in range(2):  # an automatic one may be skipped; a manual one is carried out
            if self._job_id is None:
                self._job_id = (await self._client.enqueue(self.session_id, trigger="manual"))["id"]
            try:
                job = await self._client.wait(self._job_id, timeout_seconds=self._full_seconds)
            except TimedOut:
                raise ContextFull(self.session_id, "timeout") from None
            if job["was_compacted"]:
                return await self._swapped(job, turns)
            reason = job["error"]["code"] if job["error"] else job["reason"] or job["status"]
            self._job_id = None
        raise ContextFull(self.session_id, reason)


def _mark(session: Session, ask_at: AskAt) -> int:
    return session["state"]["marks"]["auto_compact" if ask_at == "auto" else "warning"]


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
