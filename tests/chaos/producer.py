"""The producer: stores sessions, appends, asks for compactions, and writes down every answer that is a promise.

It behaves as an honest back end does: a request without an answer is sent again under the same key until there is one.
"""

from __future__ import annotations

import itertools
import json
import queue
import random
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2

from tests.chaos.arena import KEY, Arena
from tests.integration.service import history

Json = Any

ANSWER_SECONDS = 5.0  # without an answer for so long, a client asks again
AGAIN_SECONDS = 0.2
GIVE_UP_SECONDS = 120.0  # longer than any fault of the suite: a promise of the API's availability
TRIGGERS = ("manual", "manual", "manual", "bulk", "bulk", "reactive")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request for a compaction, in a session to which something new is said first."""

    session: str
    reference: str
    trigger: str
    is_new: bool = False
    cancels: bool = False


class Producer:
    """Works through its orders with a few threads; `accepted.jsonl` is its side of the ledger."""

    def __init__(self, arena: Arena, rng: random.Random, *, sessions: int, threads: int = 4) -> None:
        self._arena = arena
        self._rng = rng
        self._orders: queue.Queue[Wanted | None] = queue.Queue()
        self._numbers = itertools.count(1)
        self._sessions = [f"chaos-{number:03}" for number in range(sessions)]
        self._stored: set[str] = set()
        self._locks = {name: threading.Lock() for name in self._sessions}
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, name=f"producer-{n}", daemon=True) for n in range(threads)]
        self.book = arena.folder / "accepted.jsonl"
        self.ordered = 0
        self.answered = 0

    def order(self, count: int) -> None:
        """Wants so many compactions more, in sessions at random."""
        for _ in range(count):
            number = next(self._numbers)
            wanted = Wanted(
                session=self._rng.choice(self._sessions),
                reference=f"REF-{number:05}",
                trigger=self._rng.choice(TRIGGERS),
                cancels=self._rng.random() < 0.03,
            )
            self._put(wanted)

    def order_poison(self) -> str:
        """Wants a compaction that will kill its workers; returns its reference."""
        number = next(self._numbers)
        reference = f"POISON-{number:05}"
        self._locks[reference] = threading.Lock()
        self._put(Wanted(session=reference, reference=reference, trigger="manual"))
        return reference

    @property
    def is_idle(self) -> bool:
        """Whether every order has its answer."""
        return self.answered == self.ordered

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in self._threads:
            self._orders.put(None)
        for thread in self._threads:
            thread.join(timeout=1 if kind else None)

    def _put(self, wanted: Wanted) -> None:
        self.ordered += 1
        self._orders.put(wanted)

    def _work(self) -> None:
        with httpx2.Client(headers={"Authorization": f"Bearer {KEY}"}, timeout=ANSWER_SECONDS) as http:
            while (wanted := self._orders.get()) is not None:
                try:
                    self._serve(http, wanted)
                except Exception as error:  # noqa: BLE001 - whatever it is, the ledger must not hide it
                    self._arena.record.problems.append(f"producer: {wanted.reference}: {type(error).__name__} {error}")
                with self._lock:
                    self.answered += 1

    def _serve(self, http: httpx2.Client, wanted: Wanted) -> None:
        with self._locks[wanted.session]:
            if wanted.session not in self._stored:
                self._ask(http, "PUT", f"/v1/sessions/{wanted.session}", {"model": "claude-haiku-4-5"})
                self._append(http, wanted.session, history(6, characters=1_500))
                self._stored.add(wanted.session)
            head_seq = self._append(http, wanted.session, _news(wanted.reference))
        asked = {"session_id": wanted.session, "trigger": wanted.trigger, "instructions": f"Keep {wanted.reference}."}
        job = self._ask(http, "POST", "/v1/compactions", asked, key=wanted.reference)
        self._write({"job": job["id"], "reference": wanted.reference, "session": wanted.session, "head_seq": head_seq})
        if wanted.cancels:
            self._arena.record.cancelled.add(job["id"])
            self._ask(http, "POST", f"/v1/compactions/{job['id']}/cancel", {})

    def _append(self, http: httpx2.Client, session: str, messages: list[dict[str, Json]]) -> int:
        named = [{"uuid": str(uuid.uuid4()), **message} for message in messages]
        head_seq: int = self._ask(http, "POST", f"/v1/sessions/{session}/messages", {"messages": named})["head_seq"]
        return head_seq

    def _ask(
        self, http: httpx2.Client, method: str, path: str, body: Mapping[str, Json], *, key: str | None = None
    ) -> Json:
        """The answer, however often it takes: faults of the service are its own; a refusal is ours to report."""
        end = time.monotonic() + GIVE_UP_SECONDS
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            try:
                answer = http.request(method, self._arena.url + path, json=body, headers=headers)
            except (httpx2.TransportError, RuntimeError):
                answer = None
            if answer is not None and answer.is_success:
                return answer.json()
            if answer is not None and answer.status_code not in (409, 429, 503):
                raise ValueError(f"{method} {path} answered {answer.status_code}: {answer.text[:300]}")
            if time.monotonic() > end:
                raise TimeoutError(f"{method} {path}: no good answer in {GIVE_UP_SECONDS:.0f} s")
            time.sleep(AGAIN_SECONDS)

    def _write(self, line: Mapping[str, Json]) -> None:
        with self._lock, self.book.open("a") as book:
            book.write(json.dumps(line) + "\n")


def accepted(book: Path) -> list[dict[str, Json]]:
    """The lines of a producer's book."""
    return [json.loads(line) for line in book.read_text().splitlines()] if book.exists() else []


def _news(reference: str) -> list[dict[str, Json]]:
    """A round that makes a session worth compacting again."""
    text = f"Step {reference}: " + "check the totals of every invoice against the ledger. " * 60
    return [{"role": "user", "content": text}, {"role": "assistant", "content": f"Done with {reference}. " + text}]
