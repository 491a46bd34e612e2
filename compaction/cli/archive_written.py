"""Results of a bulk run as files: one compacted transcript per session and a manifest, beside no original.

Written through fsspec to a folder or bucket that the caller names; nothing that lies there under another name is
touched. The manifest comes last: where there is none, the archive is not whole.
"""

from __future__ import annotations

import asyncio
from typing import Any

from compaction.cli.archive import files_of
from compaction.client import Client
from compaction.core import jsonbytes

SUFFIX = ".compacted.jsonl"  # of JSON lines, one message each: what `compactd import` reads
MANIFEST = "manifest.jsonl"


async def write(client: Client, run_id: str, address: str) -> None:
    """Writes every result of the run. Raises ArchiveProblem, OSError and what the client raises."""
    files, place = await asyncio.to_thread(files_of, address)
    await asyncio.to_thread(files.makedirs, place, exist_ok=True)
    listed: list[bytes] = []
    async for told in client.bulk.results(run_id):
        outcome = told["result"]
        entry: dict[str, Any] = {"custom_id": told["custom_id"], "session_id": told["session_id"]}
        if outcome["type"] == "succeeded":
            found = await client.result(outcome["job_id"])
            name = told["session_id"].replace(":", "_") + SUFFIX
            body = b"".join(jsonbytes.encode(message) + b"\n" for message in found["messages"])
            await asyncio.to_thread(_put, files, f"{place.rstrip('/')}/{name}", body)
            entry["file"] = name
        listed.append(jsonbytes.encode(entry | {"result": outcome}) + b"\n")
    await asyncio.to_thread(_put, files, f"{place.rstrip('/')}/{MANIFEST}", b"".join(listed))


def _put(files: Any, name: str, body: bytes) -> None:  # noqa: ANN401 - fsspec has no types
    with files.open(name, "wb") as file:
        file.write(body)
