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
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from compaction.client import loop_turns
from compaction.client.asking import Asking, says_nothing
from compaction.client.client import Client
from compaction.client.errors import ContextFull, Refused, Stale, TimedOut, Unreachable
from compaction.client.hashing import prefix_hashes
from compaction.client.mirror import Mirror, Turn
from compaction.client.shapes import Job, Result, Session, SessionFields
from compaction.core.context_edits import BETA
from compaction.core.jsonbytes import Json

PATIENCE_SECONDS = (
    10.0  # for what a call does beside the model's own seconds; what is not done then is done at the next
)
FULL_SECONDS = 600.0  # for a compaction while nothing more fits: five attempts of a model that thinks long
ASK_AGAIN_SECONDS = 60.0  # after a compaction that came to nothing; a breaker opens after three of them
MAX_FULL_JOBS = 2  # while nothing more fits: an automatic one may be skipped; a manual one is carried out

AskAt = Literal["warning", "auto"]


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
        self.last_result: Result | None = None
        self.context_management: Json = None
        self.trouble: Exception | None = None
        self._client = client
        self._ask_at: AskAt = ask_at
        self._patience_seconds = patience_seconds
        self._full_seconds = full_seconds
        self._mirror = Mirror(client, session_id, fields)
        self._asking = Asking(client, session_id)
        self._left: Asking | None = None  # of a session that the list has left, to be ended
        self._quiet_until = 0.0
        self._room: int | None = None  # tokens to the mark when the session was looked at; None: look again

    @property
    def session_id(self) -> str:
        """The session that holds the list now."""
        return self._mirror.session_id

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
        return await self._mirror.load()

    async def keep(self, messages: Sequence[Mapping[str, Any]], reply: object = None) -> list[Any]:
        """The list to send to the model now: the given one, or a smaller one in its place. Go on with what comes back.

        `messages` are the loop's, {role, content}, the SDK's blocks among them; `reply` is the model's newest response:
        its usage makes the count of tokens exact. Raises ContextFull when nothing more fits and no compaction helped,
        Refused when the API does not take what is given, ValueError for messages that are none.
        """
        turns = await asyncio.to_thread(loop_turns.turns, messages)
        smaller: list[Turn] | None = None
        self.trouble = None
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._store(turns, reply)
                smaller = await self._taken(turns)
                is_full = smaller is None and await self._ask(turns)
            if is_full:
                smaller = await self._made_room(turns)
            if smaller is not None:
                smaller += loop_turns.unanswered(turns, smaller)
                async with asyncio.timeout(self._patience_seconds):
                    await self._store(smaller, None)
        except (Unreachable, TimeoutError) as error:
            self.trouble = error
        except Refused as error:
            if not says_nothing(error):
                raise  # what was given is wrong, and would be at each call
            self.trouble = error
        return list(messages) if smaller is None else smaller

    async def _store(self, turns: Sequence[Turn], reply: object) -> None:
        """Brings the session in step with the list; what was asked for in one that was left is asked for no more."""
        hashes = await asyncio.to_thread(prefix_hashes, turns)
        try:
            await self._mirror.store(turns, hashes, reply)
        finally:
            if self._asking.session_id != self.session_id:
                self._left, self._asking = self._asking, Asking(self._client, self.session_id)
                self._room, self.context_management = None, None
        if self._left is not None:
            await self._left.abandon()
            self._left = None
        if self._mirror.untaken_job_id is not None:
            self._asking.found(self._mirror.untaken_job_id)
            self._mirror.untaken_job_id = None

    async def _taken(self, turns: Sequence[Turn]) -> list[Turn] | None:
        """The smaller list once an asked compaction has ended; None while there is none."""
        job_id = await self._asking.known()
        if job_id is None:
            return None
        job = await self._client.job(job_id)
        return await self._swapped(job, turns) if job["done"] else None

    async def _swapped(self, job: Job, turns: Sequence[Turn]) -> list[Turn] | None:
        """Takes over the result of a job that has ended, if it has one and it is of this list."""
        if job["status"] != "succeeded" or not job["was_compacted"]:
            self._asking.ended()
            self._room, self._quiet_until = None, time.monotonic() + ASK_AGAIN_SECONDS
            return None
        result = await self._client.result(job["id"])
        smaller: list[Turn] | None = None
        if result["context_management"] is None:
            try:
                smaller = (await self._client.apply(job["id"], turns))["api_messages"]
            except Stale:
                self._asking.ended()
                self._mirror.leave(prefix_hashes(turns))
                await self._store(turns, None)
                return None
            self._mirror.holds(smaller)
        self._mirror.live_job_id = job["id"]
        self.context_management, self.last_result = result["context_management"], result
        self._asking.ended()
        self._room = None
        return smaller

    async def _ask(self, turns: Sequence[Turn]) -> bool:
        """Asks for a compaction where the session is near its mark; whether nothing more fits."""
        if self._room is not None and self._mirror.added_bytes < self._room:  # no token has less than a byte
            return False
        session = await self._client.session(self.session_id)
        self._mirror.added_bytes, self._room = 0, _mark(session, self._ask_at) - session["state"]["tokens"]
        is_full = session["state"]["level"] == "blocked"
        live_job_id = session["live_job_id"]
        if live_job_id not in {None, self._mirror.live_job_id} and self._asking.job_id is None:
            self._asking.found(live_job_id)  # somebody else asked for it; its result is taken at the next call
            self._room = None
            return is_full
        due = self._room <= 0 and (is_full or time.monotonic() >= self._quiet_until)
        if due and self._asking.job_id is None and turns:
            await self._asking.ask("auto" if self._ask_at == "auto" and not is_full else "manual")
        return is_full

    async def _made_room(self, turns: Sequence[Turn]) -> list[Turn] | None:
        """Waits for a compaction, the one under way or a manual one after it. Raises ContextFull."""
        reason = "unknown"
        for _ in range(MAX_FULL_JOBS):
            asking = self._asking
            try:
                job = await self._client.wait(await asking.ask("manual"), timeout_seconds=self._full_seconds)
            except TimedOut:
                raise ContextFull(self.session_id, "timeout") from None
            if job["was_compacted"]:
                smaller = await self._swapped(job, turns)
                if asking is self._asking:
                    return smaller
                reason = "stale"
            else:
                reason = job["error"]["code"] if job["error"] else job["reason"] or job["status"]
                asking.ended()
        raise ContextFull(self.session_id, reason)


def _mark(session: Session, ask_at: AskAt) -> int:
    return session["state"]["marks"]["auto_compact" if ask_at == "auto" else "warning"]
