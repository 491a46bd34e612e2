"""Results of a bulk run as files: one compacted transcript per session and a manifest, beside no original.

Written through fsspec to a folder or bucket that the caller names; nothing that lies there under another name is
touched. The manifest comes last, and an older one goes first: where there is none, the archive is not whole. All of
it is read from the service: whoever may read the run writes its archive, then or later, and anew when interrupted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from compaction.cli.archive import files_of
from compaction.client import Client, Refused
from compaction.core import jsonbytes
from compaction.formats.identity import short_digest

SUFFIX = ".compacted.jsonl"  # of JSON lines, one message each: what `compactd import` reads
MANIFEST = "manifest.jsonl"
MAX_STEM_CHARS = 200  # file systems take names of 255; an encoded id of 200 characters may have 600


@dataclass(slots=True)
class Written:
    """How many sessions have a file, and which should have one but their result is there no more."""

    files: int = 0
    lost: int = 0


async def write(client: Client, run_id: str, address: str) -> Written:
    """Writes every result of the run. Raises ArchiveProblem, OSError and what the client raises."""
    files, place = await asyncio.to_thread(files_of, address)
    folder = place.rstrip("/")
    await asyncio.to_thread(_cleared, files, place, f"{folder}/{MANIFEST}")
    listed: list[bytes] = []
    written = Written()
    async for told in client.bulk.results(run_id):
        entry: dict[str, Any] = {"custom_id": told["custom_id"], "session_id": told["session_id"]}
        job_id = await _job_of(client, told)
        body = None if job_id is None else await _lines(client, job_id)
        if body is not None:
            entry |= {"file": file_name(told["session_id"]), "job_id": job_id}
            await asyncio.to_thread(_put, files, f"{folder}/{entry['file']}", body)
            written.files += 1
        elif job_id is not None:
            written.lost += 1
        listed.append(jsonbytes.encode(entry | {"result": told["result"]}) + b"\n")
    await asyncio.to_thread(_put, files, f"{folder}/{MANIFEST}", b"".join(listed))
    return written


def file_name(session_id: str) -> str:
    """The name of a session's file: no two sessions share one."""
    stem = quote(session_id, safe="")
    if len(stem) > MAX_STEM_CHARS:
        mark = f"%-{short_digest([session_id.encode()])}"  # no encoded id holds such a sign
        stem = stem[: MAX_STEM_CHARS - len(mark)] + mark
    return stem + SUFFIX


async def _job_of(client: Client, told: dict[str, Any]) -> str | None:
    """The job whose result stands for the session: of this run, or of an unchanged session the current one."""
    outcome = told["result"]
    if outcome["type"] == "succeeded":
        return str(outcome["job_id"])
    if outcome.get("reason") != "unchanged":
        return None
    current = (await client.bulk.versions(told["session_id"]))["current"]
    return None if current is None else str(current)


async def _lines(client: Client, job_id: str) -> bytes | None:
    """The messages of a result; None when retention or its owner has deleted it."""
    try:
        found = await client.result(job_id)
    except Refused as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        return None
    return b"".join(jsonbytes.encode(message) + b"\n" for message in found["messages"])


def _cleared(files: Any, place: str, manifest: str) -> None:  # noqa: ANN401 - fsspec has no types
    files.makedirs(place, exist_ok=True)
    if files.exists(manifest):
        files.rm(manifest)


def _put(files: Any, name: str, body: bytes) -> None:  # noqa: ANN401 - fsspec has no types
    with files.open(name, "wb") as file:
        file.write(body)
