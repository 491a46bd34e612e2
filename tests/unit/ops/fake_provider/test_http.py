"""The fake's HTTP, spoken to by hand."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from ops.fake_provider import FakeProvider

pytestmark = pytest.mark.anyio
BODY = json.dumps({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}).encode()


async def talk(fake: FakeProvider, *sent: bytes, until: bytes = b"") -> bytes:
    """What comes back until `until` has come, or the fake hangs up."""
    host, port = fake.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for part in sent:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.01)
    got = b""
    while not until or got.count(until) == 0:
        piece = await reader.read(65_536)
        if not piece:
            break
        got += piece
    writer.close()
    await writer.wait_closed()
    return got


def post(body: bytes, *headers: str) -> bytes:
    lines = ["POST /v1/messages HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def test_a_request_may_come_in_pieces() -> None:
    wire = post(BODY)
    async with FakeProvider([{"text": "ok"}]) as fake:
        got = await talk(fake, wire[:10], wire[10:60], wire[60:-5], wire[-5:], until=b'"ok"')
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_body_may_come_in_chunks() -> None:
    head = b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
    first, second = BODY[:20], BODY[20:]
    chunks = b"%x\r\n%s\r\n%x;note\r\n%s\r\n0\r\n\r\n" % (len(first), first, len(second), second)
    async with FakeProvider([{"text": "ok"}]) as fake:
        await talk(fake, head + chunks[:30], chunks[30:], until=b'"ok"')
        assert fake.calls[0].body == BODY


async def test_two_requests_in_one_write_get_two_answers() -> None:
    async with FakeProvider([{"text": "one"}, {"status": 529, "body": "two"}]) as fake:
        got = await talk(fake, post(BODY) * 2, until=b"two")
    assert got.index(b'"one"') < got.index(b"HTTP/1.1 529 Overloaded")


async def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async with FakeProvider([{"text": "ok"}]) as fake:
        got = await talk(fake, post(BODY, "expect: 100-continue"), until=b'"ok"')
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "wire",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"x" * 70_000,
        b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 9999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_what_is_no_http_is_hung_up_on(wire: bytes) -> None:
    async with FakeProvider() as fake:
        with suppress(ConnectionError):  # hung up while we wrote
            assert await talk(fake, wire) == b""
        assert fake.ledger.calls == []


async def test_a_client_that_hangs_up_is_noted() -> None:
    async with FakeProvider([{"delay_s": 60}]) as fake:
        host, port = fake.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(post(BODY))
        while not fake.calls:  # noqa: ASYNC110 - the ledger is a plain object
            await asyncio.sleep(0.01)
        before = fake.calls[0].outcome
        writer.close()
        await writer.wait_closed()
        while fake.calls[0].outcome == "open":  # noqa: ASYNC110 - the test's time limit is the bound
            await asyncio.sleep(0.01)
        assert (before, fake.calls[0].outcome) == ("open", "disconnected")
