"""The client: one method per call of the API, and waiting for a job's end."""

from __future__ import annotations

import asyncio
import io
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self, Unpack, cast, overload
from urllib.parse import quote

import httpx2

from compaction.client import hashing
from compaction.client.bulk import Bulk
from compaction.client.errors import Refused, Stale, TimedOut, Unreachable, refusal
from compaction.client.http import MAX_TRIES, Http, Query, is_passing
from compaction.client.shapes import (
    AnthropicRequest,
    Appended,
    Applied,
    Breaker,
    ChatRequest,
    Context,
    Erased,
    Imported,
    InlineFields,
    Job,
    JobFilters,
    Page,
    Readiness,
    Result,
    ResultFormat,
    Session,
    SessionFields,
    StoredSession,
    Wanted,
)
from compaction.client.timeline import Happening, Timeline
from compaction.core.jsonbytes import Json

CHUNK_BYTES = 256 * 1024  # of an upload: small enough for a smooth progress line
LONG_POLL_SECONDS = 25  # below the idle limits of proxies
POLL_SECONDS = 1.0  # between two looks at a job where long-polling does not get through
LINES_TYPE = "application/x-ndjson"
_UNREADY = frozenset({503})  # /readyz says so with its document

Stage = Literal["sending", "reading"]
OnImport = Callable[[Stage, int, int], None]  # (what is being done, bytes done, bytes in all)


class Client:
    """Speaks to one compactd; use as `async with Client(url, api_key) as client`, once for all calls.

    Connections are used again. What fails in passing (a broken connection, 429, 503) is tried again, at most
    `max_tries` times in all; each POST carries an Idempotency-Key, so that nothing is done twice. Every method raises
    Unreachable or Refused (`compaction.client.errors`). Times are seconds.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        max_tries: int = MAX_TRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = Http(url, api_key, max_tries=max_tries, transport=transport)
        self.bulk = Bulk(self._http)  # the calls about bulk runs

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.close()

    async def readiness(self) -> Readiness:
        """What the service stands on and how it does; also of one that is not ready."""
        return cast("Readiness", (await self._http.send("GET", "/readyz", tolerated=_UNREADY)).body)

    async def clock_ahead_seconds(self) -> float:
        """How far this machine's clock is ahead of the API's; below 0 when it is behind. Exact to a second or so.

        Raises ValueError when what answers is no compactd.
        """
        before = time.time()
        answer = await self._http.send("GET", "/healthz")
        if not isinstance(answer.body, dict) or "version" not in answer.body:
            raise ValueError("what answers is no compactd")
        theirs = parsedate_to_datetime(answer.headers["Date"]).timestamp()  # cut to the second
        return max(before - theirs - 1, 0.0) + min(time.time() - theirs, 0.0)

    async def put_session(self, session_id: str, **fields: Unpack[SessionFields]) -> StoredSession:
        """Creates a session or changes the given fields."""
        return cast("StoredSession", await self._http.json("PUT", _session(session_id), body=dict(fields)))

    async def session(self, session_id: str) -> Session:
        """How a session stands."""
        return cast("Session", await self._http.json("GET", _session(session_id)))

    async def erase_session(self, session_id: str, *, cancel_jobs: bool = False) -> Erased:
        """Deletes a session and everything of it, for good. Needs a key with the scope admin or ops.

        Refused (code `conflict`) while jobs of it have not ended, unless `cancel_jobs`.
        """
        query: Query = {"cancel_jobs": "true"} if cancel_jobs else {}
        return cast("Erased", await self._http.json("DELETE", _session(session_id), query=query))

    async def context(self, session_id: str) -> Context:
        """What fills the session's window."""
        return cast("Context", await self._http.json("GET", f"{_session(session_id)}/context"))

    async def append(
        self, session_id: str, messages: Sequence[Mapping[str, Json]], *, expected_seq: int | None = None
    ) -> Appended:
        """Appends messages, all or none. Give each a uuid, and sending a batch twice is safe, now and later.

        With `expected_seq` it is refused (code `conflict`) unless it continues exactly there.
        """
        body: dict[str, Json] = {"messages": list(messages)}
        if expected_seq is not None:
            body["expected_seq"] = expected_seq
        return cast("Appended", await self._http.json("POST", f"{_session(session_id)}/messages", body=body))

    async def messages(
        self,
        session_id: str,
        view: Literal["live", "full", "api"] = "api",
        *,
        format: Literal["anthropic", "openai"] = "anthropic",  # noqa: A002 - the API's name for it
    ) -> list[dict[str, Any]]:
        """The messages of a session; `api` gives them ready to send, with `format` openai for a chat completion."""
        query = {"view": view} | ({"format": format} if format != "anthropic" else {})
        answer = await self._http.json("GET", f"{_session(session_id)}/messages", query=query)
        return cast("list[dict[str, Any]]", answer["data"])

    async def import_transcript(
        self,
        source: Path | bytes,
        *,
        session_id: str | None = None,
        format_name: str = "auto",
        on_progress: OnImport | None = None,
    ) -> Imported:
        """Imports a transcript, a file or its bytes; importing it again adds what is new. Raises OSError too."""
        tell = on_progress or (lambda _stage, _done, _total: None)
        query = {"format": format_name} | ({"session_id": session_id} if session_id else {})
        opened = await asyncio.to_thread(source.open, "rb") if isinstance(source, Path) else io.BytesIO(source)
        with opened as file:
            total_bytes = os.fstat(file.fileno()).st_size if isinstance(source, Path) else len(source)
            headers = {"Accept": LINES_TYPE, "Content-Length": str(total_bytes)}
            content = _chunks(file, total_bytes, tell)
            async with self._http.lines("/v1/sessions/import", content, query=query, headers=headers) as lines:
                async for line in lines:
                    if "imported" in line:
                        return cast("Imported", line["imported"])
                    if "problem" in line:
                        raise refusal(int(line["problem"].get("status", 500)), line["problem"])
                    tell("reading", line["progress"]["done_bytes"], line["progress"]["total_bytes"])
        raise Unreachable("The answer ended before the import did; import the file again.")

    async def enqueue(self, session_id: str, *, idempotency_key: str | None = None, **wanted: Unpack[Wanted]) -> Job:
        """Enqueues a compaction, or joins the one that waits.

        Calls with one `idempotency_key` give one job, also from different processes; without it each call is its own.
        """
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        body = {"session_id": session_id, **wanted}
        return cast("Job", await self._http.json("POST", "/v1/compactions", body=body, headers=headers))

    async def enqueue_inline(
        self,
        messages: Sequence[Mapping[str, Json]],
        *,
        model: str,
        idempotency_key: str | None = None,
        **fields: Unpack[InlineFields],
    ) -> Job:
        """Enqueues a compaction of `messages`, without a stored session; each call is a job of its own.

        They may be messages of the Messages API, an OpenAI chat or the rows of a Claude Code log. Go on with
        `result(job["id"])["api_messages"]` and what came later; there is nothing to `apply`.
        """
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        body = {"model": model, "messages": list(messages), **fields}
        return cast("Job", await self._http.json("POST", "/v1/compactions", body=body, headers=headers))

    async def job(self, job_id: str, *, wait_seconds: int = 0) -> Job:
        """The job, or with `wait_seconds` the job at its end, at most so much later."""
        headers = {"Prefer": f"wait={wait_seconds}"} if wait_seconds else {}
        return cast("Job", await self._http.json("GET", _job(job_id), headers=headers))

    async def watch(
        self, job_id: str, *, step_seconds: int = LONG_POLL_SECONDS, timeout_seconds: float | None = None
    ) -> AsyncIterator[Job]:
        """The job now, then at least every `step_seconds`, and last at its end or when the time is over.

        Waits at the server; where something between us cuts that off, it looks every second instead.
        """
        until = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        job, server_waits = await self.job(job_id), True
        yield job
        while not job["done"] and (left := until - time.monotonic()) > 0:
            if server_waits:
                job, server_waits = await self._waited(job_id, math.ceil(min(left, step_seconds)))
            else:
                await asyncio.sleep(min(left, POLL_SECONDS))
                job = await self.job(job_id)
            yield job

    async def _waited(self, job_id: str, seconds: int) -> tuple[Job, bool]:
        """The job after a long-poll, and whether the server can do that."""
        headers = {"Prefer": f"wait={seconds}"}
        try:
            answer = await self._http.send("GET", _job(job_id), headers=headers)
        except (Unreachable, Refused) as error:
            if isinstance(error, Refused) and not is_passing(error):
                raise
            return await self.job(job_id), False
        return cast("Job", answer.body), "Preference-Applied" in answer.headers

    async def wait(self, job_id: str, *, timeout_seconds: float | None = None) -> Job:
        """The job at its end. Raises TimedOut when that takes longer; the job goes on."""
        async for job in self.watch(job_id, timeout_seconds=timeout_seconds):
            if job["done"]:
                return job
        raise TimedOut(f"The job {job_id} has not ended after {timeout_seconds:g} s.")

    async def compact_and_wait(
        self, session_id: str, *, timeout_seconds: float | None = None, **wanted: Unpack[Wanted]
    ) -> Job:
        """Enqueues a compaction and gives the job at its end. Raises TimedOut when that takes longer."""
        job = await self.enqueue(session_id, **wanted)
        return await self.wait(job["id"], timeout_seconds=timeout_seconds)

    async def compact_inline(
        self,
        messages: Sequence[Mapping[str, Json]],
        *,
        model: str,
        timeout_seconds: float | None = None,
        **fields: Unpack[InlineFields],
    ) -> Job:
        """`enqueue_inline`, and the job at its end. Raises TimedOut when that takes longer."""
        job = await self.enqueue_inline(messages, model=model, **fields)
        return await self.wait(job["id"], timeout_seconds=timeout_seconds)

    async def iter_events(self, job_id: str, *, last_event_id: str | None = None) -> AsyncIterator[Happening]:
        """What happens to a job, each entry once and in order, until `end`; `last_event_id` goes on behind an entry."""
        async for one in Timeline(self._http, _job(job_id), last_event_id).happenings():
            yield one

    async def apply(self, job_id: str, held: Sequence[Mapping[str, Json]]) -> Applied:
        """Tells that the result of this job replaces `held` (your messages, {role, content}), and gives the newer tail.

        Replace your list by `api_messages`. `held` may be longer than what the result covers. Raises Stale when it is
        not the same: then nothing was changed, and your list is still yours.
        """
        hashes = await asyncio.to_thread(hashing.prefix_hashes, held)
        try:
            return await self.apply_hash(job_id, hashes[-1] if hashes else hashing.NOTHING, hashes)
        except Stale as stale:
            if not stale.only_longer or stale.length is None:
                raise
            return await self.apply_hash(job_id, hashes[stale.length - 1])

    async def apply_hash(self, job_id: str, prefix_hash: str, hashes: Sequence[str] | None = None) -> Applied:
        """`apply` for those who keep hashes (docs/api.md has the recipe) instead of messages."""
        body: dict[str, Json] = {"prefix_hash": prefix_hash}
        if hashes is not None:
            body["hashes"] = list(hashes)
        return cast("Applied", await self._http.json("POST", f"{_job(job_id)}/apply", body=body))

    @overload
    async def result(self, job_id: str, format: Literal["envelopes"] = ...) -> Result: ...

    @overload
    async def result(self, job_id: str, format: Literal["anthropic"]) -> AnthropicRequest: ...

    @overload
    async def result(self, job_id: str, format: Literal["openai"]) -> ChatRequest: ...

    @overload
    async def result(self, job_id: str, format: Literal["claude_code"]) -> bytes: ...

    async def result(
        self,
        job_id: str,
        format: ResultFormat = "envelopes",  # noqa: A002 - the API's name for it
    ) -> Result | AnthropicRequest | ChatRequest | bytes:
        """The result of a job that compacted: all of it, or the messages in one of three formats (docs/formats.md).

        `anthropic` and `openai` give the members of a request that the conversation decides, `claude_code` the rows to
        append to the session's log.
        """
        answer = await self._http.send("GET", f"{_job(job_id)}/result", query={"format": format})
        if format == "claude_code":
            return answer.content
        return cast("Result | AnthropicRequest | ChatRequest", answer.body)

    async def jobs(self, **filters: Unpack[JobFilters]) -> Page[Job]:
        """A page of jobs, newest first."""
        return cast("Page[Job]", await self._http.json("GET", "/v1/compactions", query=cast("Query", filters)))

    async def cancel(self, job_id: str) -> Job:
        """Cancels a job."""
        return cast("Job", await self._http.json("POST", f"{_job(job_id)}/cancel"))

    async def retry(self, job_id: str) -> Job:
        """A new job with the parameters of one that has ended."""
        return cast("Job", await self._http.json("POST", f"{_job(job_id)}/retry"))

    async def breaker(self, session_id: str) -> Breaker:
        """A session's circuit breaker."""
        return cast("Breaker", await self._http.json("GET", f"{_session(session_id)}/breaker"))

    async def reset_breaker(self, session_id: str) -> Breaker:
        """Closes a session's circuit breaker."""
        return cast("Breaker", await self._http.json("POST", f"{_session(session_id)}/breaker/reset"))


def _session(session_id: str) -> str:
    return f"/v1/sessions/{_quoted(session_id)}"


def _job(job_id: str) -> str:
    return f"/v1/compactions/{_quoted(job_id)}"


def _quoted(name: str) -> str:
    """The name as one part of a path, also where it is `.` or `..`, which a path would take for its own."""
    quoted = quote(name, safe="")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


async def _chunks(file: BinaryIO, total_bytes: int, tell: OnImport) -> AsyncIterator[bytes]:
    sent = 0
    while sent < total_bytes:
        chunk = await asyncio.to_thread(file.read, min(CHUNK_BYTES, total_bytes - sent))
        if not chunk:
            return
        yield chunk
        sent += len(chunk)
        tell("sending", sent, total_bytes)
