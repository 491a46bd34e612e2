"""The API keeps its document: every call in it is tried with valid and broken input, and with things that are there.

No answer may be a 5xx, none may have a status, a header or a shape that the document does not tell, and no broken input
may pass. `make fuzz-api` tries much more of the same (COMPACTD_FUZZ_EXAMPLES for each call).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.settings import Settings
from tests.integration.api import stage
from tests.integration.api.conftest import KEY, speaking_to
from tests.integration.api.serving import Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EXAMPLES = int(os.environ.get("COMPACTD_FUZZ_EXAMPLES", "3"))  # tried for each call, beside those the document gives
SEED = os.environ.get("COMPACTD_FUZZ_SEED", "20261130")
RUN_SECONDS = 60 + 30 * EXAMPLES  # a run that takes longer hangs
CONFIG = Path(__file__).with_name("schemathesis.toml")
COMMAND = (sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()")
SCOPES = ["sessions:write", "jobs:write", "read", "ops"]  # of one who cannot take the key away that he works with
KEYS = r"^/v1/api-keys"


@pytest.fixture(scope="module")
def server(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(settings, tmp_path_factory.mktemp("contract"), COMPACTD_MAX_WAIT_SECONDS="0") as running:
        yield running


@pytest.fixture
async def admin(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with speaking_to(app, KEY) as speaking:
        yield speaking


async def key_of(admin: httpx2.AsyncClient, tenant: str, *scopes: str) -> str:
    key: str = (await admin.post("/v1/api-keys", json={"tenant": tenant, "scopes": scopes})).json()["key"]
    return key


async def things(app: FastAPI, key: str) -> dict[str, str]:
    """A session with a finished compaction, as values for the addresses of calls."""
    async with speaking_to(app, key) as client:
        await client.put("/v1/sessions/known", json={"model": "claude-haiku-4-5"})
        turns = [{"uuid": "m1", "role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        await client.post("/v1/sessions/known/messages", json={"messages": turns})
        await client.put("/v1/sessions/known/state/files/a.py", json={"content": "x = 1"})
        job_id = (await client.post("/v1/compactions", json={"session_id": "known"})).json()["id"]
    await stage.succeed(app, job_id)
    return {"path.session_id": "known", "path.job_id": job_id, "path.kind": "files", "path.key": "a.py"}


def tried(server: Server, key: str, folder: Path, *arguments: str, given: Mapping[str, str] | None = None) -> str:
    """What schemathesis says after all its tries. Fails with what it found."""
    config = folder / "schemathesis.toml"
    parameters = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in (given or {}).items())
    config.write_text(CONFIG.read_text() + (f"\n[parameters]\n{parameters}" if parameters else ""))
    command = [*COMMAND, "--config-file", str(config), "run", f"{server.url}/openapi.json"]
    command += ["--seed", SEED, "--max-examples", str(EXAMPLES), "--continue-on-failure", *arguments]
    command += ["--header", f"Authorization: Bearer {key}"]
    environ = {**os.environ, "NO_COLOR": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "COLUMNS": "120"}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    return done.stdout


async def operations(app: FastAPI, admin: httpx2.AsyncClient) -> list[tuple[str, str]]:
    document: dict[str, Any] = (await admin.get("/openapi.json")).json()
    return [(path, method) for path, item in document["paths"].items() for method in item]


async def still_works(app: FastAPI, server: Server, key: str) -> None:
    """The process lives and the key opens: else the last answers were all the same refusal."""
    async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as client:
        answer = await client.get("/v1/compactions", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.text
    assert server.process.poll() is None


@pytest.mark.timeout(RUN_SECONDS + 60)
async def test_every_call_of_the_document_keeps_it_whatever_comes_in(
    app: FastAPI, admin: httpx2.AsyncClient, server: Server, tmp_path: Path
) -> None:
    key = await key_of(admin, "default", *SCOPES)
    said = tried(server, key, tmp_path, "--exclude-path-regex", KEYS)
    calls = [path for path, _ in await operations(app, admin) if not re.search(KEYS, path)]
    assert f"Tested: {len(calls)}" in said
    await still_works(app, server, key)


@pytest.mark.timeout(RUN_SECONDS + 60)
async def test_calls_on_things_that_are_there_keep_it_too(
    app: FastAPI, admin: httpx2.AsyncClient, server: Server, tmp_path: Path
) -> None:
    key = await key_of(admin, "owner-of-things", *SCOPES)
    given = await things(app, key)
    tried(server, key, tmp_path, "--include-path-regex", r"\{(session_id|job_id)\}", given=given)
    await still_works(app, server, key)


@pytest.mark.timeout(RUN_SECONDS + 60)
async def test_calls_about_keys_keep_it_too(
    app: FastAPI, admin: httpx2.AsyncClient, server: Server, tmp_path: Path
) -> None:
    """By themselves: an admin's key may end its own life in the middle of it."""
    key = await key_of(admin, "owner-of-keys", "admin", "read")
    tried(server, key, tmp_path, "--include-path-regex", KEYS)
    assert server.process.poll() is None


async def test_nothing_that_was_tried_is_a_fault_in_the_log(server: Server) -> None:
    """After the others of this module: 5xx would show there even if nobody had looked at the answer."""
    faults = [line for line in server.lines() if line.get("level") == "error" or line.get("status") == 500]
    assert faults == []
