"""Bulk runs through the client: `client.bulk.start(…)`, then `client.bulk.run(id)` until it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, TypedDict, cast
from urllib.parse import quote

from compaction.client.http import Http
from compaction.client.shapes import Page
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json


class BulkRun(TypedDict):
    """A run: its plan, and how far it has come."""

    id: str
    state: Literal["planning", "ready", "running", "sampled", "paused", "cancelling", "ended"]
    done: bool
    way: Literal["live", "message_batches"]
    way_note: str | None
    end_reason: str | None
    sample: int | None
    created_at: str
    planned_at: str | None
    started_at: str | None
    ended_at: str | None
    sessions: dict[str, int]
    skipped: dict[str, int]
    failed: dict[str, int]
    request_counts: dict[str, int]
    tokens: dict[str, int]
    cost: dict[str, float | None]


class Bulk:
    """The calls about bulk runs; each raises Unreachable or Refused."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def start(self, order: Mapping[str, Json]) -> BulkRun:
        """A new run; `order` is the body of POST /v1/bulk."""
        return cast("BulkRun", await self._http.json("POST", "/v1/bulk", body=dict(order)))

    async def run(self, run_id: str) -> BulkRun:
        """A run as it stands."""
        return cast("BulkRun", await self._http.json("GET", _run(run_id)))

    async def runs(self, *, limit: int = 50, cursor: str | None = None) -> Page[BulkRun]:
        """A page of runs, newest first."""
        query = {"limit": limit, "cursor": cursor}
        return cast("Page[BulkRun]", await self._http.json("GET", "/v1/bulk", query=query))

    async def pause(self, run_id: str) -> BulkRun:
        """Begins no further session."""
        return await self._told(run_id, "pause")

    async def resume(self, run_id: str) -> BulkRun:
        """Goes on after a pause, a plan or a sample."""
        return await self._told(run_id, "resume")

    async def cancel(self, run_id: str) -> BulkRun:
        """Begins no further session and cancels the run's own jobs."""
        return await self._told(run_id, "cancel")

    async def results(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        """Each session with its result, as they come."""
        async with self._http.stream(f"{_run(run_id)}/results", {"Accept": "application/x-ndjson"}) as answer:
            async for line in answer.aiter_lines():
                if line.strip():
                    yield jsonbytes.decode(line.encode())

    async def report(self, run_id: str) -> dict[str, Any]:
        """The run in figures: distributions, ratios, failures, cost, the slowest and the biggest losses."""
        return cast("dict[str, Any]", await self._http.json("GET", f"{_run(run_id)}/report"))

    async def report_page(self, run_id: str) -> str:
        """The same as a page for people, one file without scripts."""
        async with self._http.stream(f"{_run(run_id)}/report", {"Accept": "text/html"}) as answer:
            return (await answer.aread()).decode("utf-8")

    async def versions(self, session_id: str) -> dict[str, Any]:
        """The results of a session, newest first, and which one is current."""
        return cast("dict[str, Any]", await self._http.json("GET", _versions(session_id)))

    async def choose(self, session_id: str, job_id: str | None) -> dict[str, Any]:
        """Has the live view begin with this job's result, or with None be as the producer stored it."""
        return cast("dict[str, Any]", await self._http.json("PUT", _versions(session_id), body={"job_id": job_id}))

    async def _told(self, run_id: str, word: str) -> BulkRun:
        return cast("BulkRun", await self._http.json("POST", f"{_run(run_id)}/{word}"))


def _versions(session_id: str) -> str:
    return f"/v1/sessions/{quote(session_id, safe='')}/versions"


def _run(run_id: str) -> str:
    return f"/v1/bulk/{quote(run_id, safe='')}"
