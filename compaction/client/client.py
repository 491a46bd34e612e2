"""The client: one method per call of the API, and waiting for a job's end."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self, cast
from urllib.parse import quote
from uuid import uuid4

import httpx2

from compaction.client.errors import Refused, TimedOut, Unreachable
from compaction.client.http import Http
from compaction.client.shapes import Appended, Breaker, Context, Imported, Job, Page, Result, Session, StoredSession
from compaction.core.jsonbytes import Json

CHUNK_BYTES = 256 * 1024  # of an upload: small enough for a smooth progress line
LONG_POLL_SECONDS = 25  # below the idle limits of proxies
LINES_TYPE = "application/x-ndjson"

Stage = Literal["sending", "reading"]
OnImport = Callable[[Stage, int, int], None]  # (what is being done, bytes done, bytes in all)


class Client:
    """Speaks to one compactd; use as `async with Client(url, api_key) as client`.

    Every method raises Unreachable or Refused (`compaction.client.errors`). Times are seconds.
    """

    def __init__(self, url: str, api_key: str, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._http = Http(url, api_key, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.close()

    async def put_session(self, session_id: str, **fields: Json) -> StoredSession:
        """Creates a session or changes the given fields: model, system, tools, request, settings, query_source."""
        return cast("StoredSession", await self._http.json("PUT", _session(session_id), body=fields))

    async def session(self, session_id: str) -> Session:
        """How a session stands."""
        return cast("Session", await self._http.json("GET", _session(session_id)))

    async def context(self, session_id: str) -> Context:
        """What fills the session's window."""
        return cast("Context", await self._http.json("GET", f"{_session(session_id)}/context"))

    async def append(
        self, session_id: str, messages: Sequence[Mapping[str, Json]], *, expected_seq: int | None = None
    ) -> Appended:
        """Appends messages; give each a uuid, and sending a batch twice is safe."""
        body: dict[str, Json] = {"messages": list(messages)}
        if expected_seq is not None:
            body["expected_seq"] = expected_seq
        return cast("Appended", await self._http.json("POST", f"{_session(session_id)}/messages", body=body))

    async def messages(self, session_id: str, view: Literal["live", "full", "api"] = "api") -> list[dict[str, Any]]:
        """The messages of a session; `api` gives them ready to send."""
        answer = await self._http.json("GET", f"{_session(session_id)}/messages", query={"view": view})
        return cast("list[dict[str, Any]]", answer["data"])

    async def import_file(
        self,
        path: Path,
        *,
        session_id: str | None = None,
        format_name: str = "auto",
        on_progress: OnImport | None = None,
    ) -> Imported:
        """Imports a transcript file. Raises OSError when it cannot be read."""
        tell = on_progress or (lambda _stage, _done, _total: None)
        query = {"format": format_name} | ({"session_id": session_id} if session_id else {})
        with await asyncio.to_thread(path.open, "rb") as file:
            total_bytes = os.fstat(file.fileno()).st_size
            headers = {"Accept": LINES_TYPE, "Content-Length": str(total_bytes)}
            content = _chunks(file, total_bytes, tell)
            async with self._http.lines("/v1/sessions/import", content, query=query, headers=headers) as lines:
                async for line in lines:
                    if "imported" in line:
                        return cast("Imported", line["imported"])
                    if "problem" in line:
                        raise Refused(int(line["problem"].get("status", 500)), line["problem"])
                    tell("reading", line["progress"]["done_bytes"], line["progress"]["total_bytes"])
        raise Unreachable("The answer ended before the import did; import the file again.")

    async def enqueue(self, session_id: str, *, idempotency_key: str | None = None, **parameters: Json) -> Job:
        """Enqueues a compaction; `parameters` are those of POST /v1/compactions: trigger, scope, instructions."""
        headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
        body = {"session_id": session_id, **parameters}
        return cast("Job", await self._http.json("POST", "/v1/compactions", body=body, headers=headers))

    async def job(self, job_id: str, *, wait_seconds: int = 0) -> Job:
        """The job, or with `wait_seconds` the job at its end, at most so much later."""
        headers = {"Prefer": f"wait={wait_seconds}"} if wait_seconds else {}
        return cast("Job", await self._http.json("GET", _job(job_id), headers=headers))

    async def watch(
        self, job_id: str, *, step_seconds: int = LONG_POLL_SECONDS, timeout_seconds: float | None = None
    ) -> AsyncIterator[Job]:
        """The job now, then at least every `step_seconds`, and last at its end or when the time is over."""
        until = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        job = await self.job(job_id)
        yield job
        while not job["done"] and (left := until - time.monotonic()) > 0:
            job = await self.job(job_id, wait_seconds=math.ceil(min(left, step_seconds)))
            yield job

    async def wait(self, job_id: str, *, timeout_seconds: float | None = None) -> Job:
        """The job at its end. Raises TimedOut when that takes longer; the job goes on."""
        async for job in self.watch(job_id, timeout_seconds=timeout_seconds):
            if job["done"]:
                return job
        raise TimedOut(f"The job {job_id} has not ended after {timeout_seconds:g} s.")

    async def result(self, job_id: str) -> Result:
        """The result of a job that compacted."""
        return cast("Result", await self._http.json("GET", f"{_job(job_id)}/result"))

    async def jobs(self, **filters: str | int | None) -> Page[Job]:
        """A page of jobs, newest first; filters: status, session_id, error_code, trigger, limit, cursor."""
        return cast("Page[Job]", await self._http.json("GET", "/v1/compactions", query=filters))

    async def cancel(self, job_id: str) -> Job:
        """Cancels a job."""
        return cast("Job", await self._http.json("POST", f"{_job(job_id)}/cancel"))

    async def retry(self, job_id: str) -> Job:
        """A new job with the parameters of one that has ended."""
        headers = {"Idempotency-Key": uuid4().hex}
        return cast("Job", await self._http.json("POST", f"{_job(job_id)}/retry", headers=headers))

    async def breaker(self, session_id: str) -> Breaker:
        """A session's circuit breaker."""
        return cast("Breaker", await self._http.json("GET", f"{_session(session_id)}/breaker"))

    async def reset_breaker(self, session_id: str) -> Breaker:
        """Closes a session's circuit breaker."""
        return cast("Breaker", await self._http.json("POST", f"{_session(session_id)}/breaker/reset"))


def _session(session_id: str) -> str:
    return f"/v1/sessions/{quote(session_id, safe='')}"


def _job(job_id: str) -> str:
    return f"/v1/compactions/{quote(job_id, safe='')}"


async def _chunks(file: BinaryIO, total_bytes: int, tell: OnImport) -> AsyncIterator[bytes]:
    sent = 0
    while sent < total_bytes:
        chunk = await asyncio.to_thread(file.read, min(CHUNK_BYTES, total_bytes - sent))
        if not chunk:
            return
        yield chunk
        sent += len(chunk)
        tell("sending", sent, total_bytes)
