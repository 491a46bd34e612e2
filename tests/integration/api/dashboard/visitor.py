"""A person at the dashboard, without a browser: signs in by the form and sends forms as they were given."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape

import httpx2
from fastapi import FastAPI

from compaction.store.tenants import SCOPES
from tests.integration.api.conftest import KEY, speaking_to

_TOKEN = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass
class Visitor:
    """`csrf` is the token of the visit's forms."""

    http: httpx2.AsyncClient
    csrf: str = ""

    async def sign_in(self, key: str, **fields: str) -> httpx2.Response:
        form = await self.http.get("/dashboard/sign-in")
        sent = {"csrf": token_in(form.text), "key": key} | fields
        answer = await self.http.post("/dashboard/sign-in", data=sent)
        if answer.status_code == 303:
            self.csrf = token_in((await self.http.get("/dashboard")).text)
        return answer

    async def get(self, address: str) -> httpx2.Response:
        return await self.http.get(f"/dashboard{address}")

    async def post(self, address: str, **fields: str) -> httpx2.Response:
        return await self.http.post(f"/dashboard{address}", data={"csrf": self.csrf} | fields)

    async def text(self, address: str) -> str:
        """What the page says, as people read it."""
        answer = await self.get(address)
        assert answer.status_code == 200, (address, answer.status_code, words(answer.text)[-500:])
        return words(answer.text)


def token_in(html: str) -> str:
    found = _TOKEN.search(html)
    assert found, html[:500]
    return unescape(found[1])


def words(html: str) -> str:
    """A page without its markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


@asynccontextmanager
async def at_the_door(app: FastAPI) -> AsyncIterator[Visitor]:
    async with speaking_to(app, None) as http:
        yield Visitor(http)


@asynccontextmanager
async def visiting(app: FastAPI, key: str = KEY, **fields: str) -> AsyncIterator[Visitor]:
    """Somebody who signed in with the key."""
    async with at_the_door(app) as visitor:
        answer = await visitor.sign_in(key, **fields)
        assert answer.status_code == 303, words(answer.text)
        yield visitor


async def key_for(app: FastAPI, tenant: str, *scopes: str) -> str:
    """A new key of the tenant; with all scopes when none is named."""
    async with speaking_to(app, KEY) as admin:
        answer = await admin.post("/v1/api-keys", json={"tenant": tenant, "scopes": list(scopes or SCOPES)})
        key: str = answer.json()["key"]
        return key
