"""Every call of the document that takes a body: packed bodies are bounded, and other codings are told apart."""

from __future__ import annotations

import gzip

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store.tenants import OPERATOR_TENANT
from tests.integration.api.owned import Operation, Owner, operations
from tests.integration.api.stage import succeed

pytestmark = pytest.mark.anyio

BOMB = gzip.compress(b"\0" * 60_000_000, mtime=0)  # 58 KB that become more than any limit of this application
RAW = "application/octet-stream"


@pytest.fixture
async def owner(app: FastAPI, admin: httpx2.AsyncClient) -> Owner:
    """A tenant with one of everything, so that only the body is wrong. It is the operator's: that one may make keys."""
    calls = operations((await admin.get("/openapi.json")).json())
    made = Owner(OPERATOR_TENANT, admin, calls, {"job_id": lambda job_id: succeed(app, job_id)})
    await made.settle()
    return made


def with_bodies(owner: Owner) -> list[Operation]:
    return [operation for operation in owner.calls if "requestBody" in operation.details]


async def refused(owner: Owner, operation: Operation, content: bytes, **headers: str) -> tuple[int, str]:
    media = RAW if RAW in operation.details["requestBody"]["content"] else "application/json"
    sent = {"Content-Type": media} | {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await owner.client.request(operation.method, owner.address(operation, {}), content=content, headers=sent)
    assert answer.headers["content-type"] == "application/problem+json", str(operation)
    return answer.status_code, answer.json()["code"]


async def test_a_packed_body_meets_the_limit_and_not_the_memory(owner: Owner) -> None:
    for operation in with_bodies(owner):
        assert await refused(owner, operation, BOMB, content_encoding="gzip") == (413, "too_large"), str(operation)


@pytest.mark.parametrize("coding", ["br", "deflate", "zstd", "gzip, gzip", "compress"])
async def test_another_coding_is_named_as_not_taken(owner: Owner, coding: str) -> None:
    for operation in with_bodies(owner):
        answer = await refused(owner, operation, BOMB, content_encoding=coding)
        assert answer == (415, "invalid_request"), str(operation)


async def test_what_is_not_gzip_or_ends_too_early_is_malformed(owner: Owner) -> None:
    for operation in with_bodies(owner):
        for broken in (b"{}", gzip.compress(b'{"a":1}', mtime=0)[:-4]):
            answer = await refused(owner, operation, broken, content_encoding="gzip")
            assert answer == (400, "invalid_request"), str(operation)


async def test_a_crowd_of_empty_gzip_members_is_refused(owner: Owner) -> None:
    empty = gzip.compress(b"", mtime=0)
    for operation in with_bodies(owner):
        answer = await refused(owner, operation, empty * 50_000, content_encoding="gzip")
        assert answer == (413, "too_large"), str(operation)
