"""The runbooks in the dashboard: every code that a job can fail with is explained, and links stay inside."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from api.dashboard import runbooks
from compaction import errors
from tests.integration.api.dashboard.visitor import visiting

pytestmark = pytest.mark.anyio


def kinds(base: type[errors.JobError]) -> Iterator[type[errors.JobError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


async def test_every_code_of_a_failed_job_has_its_page(app: FastAPI) -> None:
    codes = {kind.code for kind in kinds(errors.JobError)}
    assert len(codes) >= 15
    assert codes - set(runbooks.advice()) == set()
    async with visiting(app) as visitor:
        for code in codes:
            assert "What to do" in await visitor.text(f"/help/{code}"), code


async def test_runbooks_link_to_each_other_here(app: FastAPI) -> None:
    async with visiting(app) as visitor:
        for name in (*runbooks.names(), "error-codes", "rate_limited"):
            html = (await visitor.get(f"/help/{name}")).text
            for link in re.findall(r'href="(/dashboard/help/[^"]+)"', html):
                assert (await visitor.http.get(link)).status_code == 200, (name, link)
            assert ".md" not in "".join(re.findall(r'href="([^"]+)"', html)), name
