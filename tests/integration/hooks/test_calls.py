"""Guarded calls over real sockets: where the connection goes, and what becomes of strange answers."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import logging
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from compaction import __version__
from compaction.core.addresses import AddressRules, Allowance
from compaction.hooks.guarded import MAX_ANSWER_BYTES, MAX_TENANT_CALLS, Answer, CallProblem, GuardedCaller
from tests.integration.hooks.receiver import answer, receiving

pytestmark = pytest.mark.anyio

HOST = "hooks.example.test"
INSIDE = AddressRules(Allowance(inner=True), None)


class Names:
    """Resolves names to the addresses that a test gives; asked again, it lies as a rebinding name server does."""

    def __init__(self, *found: str, later: Sequence[str] = ("203.0.113.9",)) -> None:
        self._found = [found]
        self._later = later
        self.asked = 0

    def __call__(self, host: str, port: int) -> Sequence[str]:
        del host, port
        self.asked += 1
        return self._found.pop() if self._found else self._later


def caller(*found: str, rules: AddressRules = INSIDE, verify: ssl.SSLContext | None = None) -> GuardedCaller:
    """A caller for whom every name has these addresses."""
    return GuardedCaller(rules, resolve=Names(*(found or ("127.0.0.1",))), verify=verify)


async def problem_of(pieces: Sequence[bytes], *, resets: bool = False) -> str:
    """What a call says whose answer is no good."""
    async with receiving(pieces, resets=resets) as receiver:
        with pytest.raises(CallProblem) as caught:
            await caller().post("t", f"http://{HOST}:{receiver.port}/", b"{}", {})
    return str(caught.value)


async def test_a_call_goes_to_the_judged_address_with_the_name_in_its_host_header() -> None:
    names = Names("127.0.0.1")
    async with receiving(answer({"ok": True})) as receiver:
        url = f"http://{HOST}:{receiver.port}/path?token=x"
        got = await GuardedCaller(INSIDE, resolve=names).post("t", url, b'{"a":1}', {"X-One": "1"})
    assert got == Answer(200, b'{"ok": true}')
    assert names.asked == 1
    (request,) = receiver.received
    assert request.line == "POST /path?token=x HTTP/1.1"
    assert request.headers["host"] == f"{HOST}:{receiver.port}"
    assert request.headers["x-one"] == "1"
    assert request.headers["user-agent"] == f"compactd/{__version__}"
    assert request.headers["accept-encoding"] == "identity"
    assert request.json == {"a": 1}


async def test_each_call_has_a_connection_of_its_own() -> None:
    async with receiving(answer("x")) as receiver:
        for _ in range(2):
            await caller().post("t", f"http://{HOST}:{receiver.port}/", b"{}", {})
    assert receiver.connections == 2


async def test_addresses_that_are_not_allowed_are_left_out_and_never_tried() -> None:
    rules = AddressRules(Allowance(networks=(ipaddress.ip_network("127.0.0.1"),)), None)
    async with receiving(answer("x")) as receiver:
        url = f"http://{HOST}:{receiver.port}/"
        assert (await caller("127.0.0.2", "10.0.0.1", "127.0.0.1", rules=rules).post("t", url, b"{}", {})).status == 200
        with pytest.raises(CallProblem, match=r"not allowed here \(loopback\)"):
            await caller("127.0.0.2", rules=rules).post("t", url, b"{}", {})
    assert receiver.connections == 1


async def test_the_next_address_is_tried_when_nobody_listens_at_the_first() -> None:
    async with receiving(answer("x")) as receiver:
        url = f"http://{HOST}:{receiver.port}/"
        assert (await caller("127.0.0.2", "127.0.0.1").post("t", url, b"{}", {})).body == b"x"


async def test_when_nobody_listens_anywhere_it_is_told_after_four_addresses() -> None:
    async with receiving(answer("x")) as receiver:
        url = f"http://{HOST}:{receiver.port}/"
        with pytest.raises(CallProblem, match=r"^nobody answers at the address$"):
            await caller(*(f"127.0.0.{number}" for number in range(2, 6)), "127.0.0.1").post("t", url, b"{}", {})
    assert receiver.connections == 0


async def test_an_address_in_the_url_needs_no_name_server() -> None:
    names = Names()
    async with receiving(answer("x")) as receiver:
        await GuardedCaller(INSIDE, resolve=names).post("t", f"http://127.0.0.1:{receiver.port}/", b"{}", {})
    assert names.asked == 0


async def test_a_redirect_is_an_answer_and_not_followed() -> None:
    async with receiving(answer("")) as other:
        moved = answer("", status="302 Found", headers=f"Location: http://127.0.0.1:{other.port}/\r\n")
        async with receiving(moved) as receiver:
            got = await caller().post("t", f"http://{HOST}:{receiver.port}/", b"{}", {})
    assert got.status == 302
    assert other.connections == 0


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving(answer("x")) as proxy, receiving(answer("y")) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert (await caller().post("t", f"http://{HOST}:{receiver.port}/", b"{}", {})).body == b"y"
    assert proxy.connections == 0


async def test_an_answer_up_to_the_limit_is_read_and_one_byte_more_is_refused() -> None:
    async with receiving(answer(b"x" * MAX_ANSWER_BYTES)) as receiver:
        got = await caller().post("t", f"http://{HOST}:{receiver.port}/", b"{}", {})
    assert len(got.body) == 65_536
    assert await problem_of(answer(b"x" * (MAX_ANSWER_BYTES + 1))) == "answered with more than 65,536 bytes"


async def test_an_answer_without_end_is_cut_at_the_limit() -> None:
    endless = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *[b"4000\r\n" + b"x" * 0x4000 + b"\r\n"] * 100]
    assert await problem_of(endless) == "answered with more than 65,536 bytes"


async def test_a_compressed_answer_is_refused_unread() -> None:
    packed = gzip.compress(b"x" * 10_000_000)
    pieces = answer(packed, headers="Content-Encoding: gzip\r\n")
    assert await problem_of(pieces) == "answered compressed, although it was asked not to"


@pytest.mark.parametrize("pieces", [[b"SSH-2.0-OpenSSH_9.9\r\n"], [b"HTTP/9.9 what\r\n\r\n"], []])
async def test_what_is_no_http_is_told(pieces: Sequence[bytes]) -> None:
    assert await problem_of(pieces) == "answered with something that is no HTTP"


async def test_endless_headers_are_no_http() -> None:
    assert await problem_of([b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"y" * 1_000 + b"\r\n"] * 300]) == (
        "answered with something that is no HTTP"
    )


async def test_a_connection_that_breaks_is_told() -> None:
    short = [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"]
    assert await problem_of(short) == "answered with something that is no HTTP"
    assert await problem_of(short, resets=True) == "the connection broke before the answer was complete"


async def test_a_tenant_whose_hooks_are_slow_waits_for_them_alone() -> None:
    shared = GuardedCaller(INSIDE, resolve=lambda _host, _port: ["127.0.0.1"])
    async with receiving(silent=True) as slow, receiving(answer("x")) as quick:
        calls = [
            asyncio.create_task(shared.post("slow", f"http://{HOST}:{slow.port}/", b"{}", {}))
            for _ in range(MAX_TENANT_CALLS + 3)
        ]
        while slow.connections < MAX_TENANT_CALLS:  # noqa: ASYNC110 - the receiver only counts
            await asyncio.sleep(0.001)
        assert (await shared.post("other", f"http://{HOST}:{quick.port}/", b"{}", {})).body == b"x"
        assert slow.connections == MAX_TENANT_CALLS == 32
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_cancelled_call_hangs_up() -> None:
    async with receiving(silent=True) as receiver:
        call = asyncio.create_task(caller().post("t", f"http://{HOST}:{receiver.port}/", b"{}", {}))
        while not receiver.received:  # noqa: ASYNC110 - the receiver only counts
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await receiver.hung_up.wait()


async def test_no_log_line_tells_the_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # what the worker keeps of other people's lines at most
    async with receiving(answer("x")) as receiver:
        await caller().post("t", f"http://{HOST}:{receiver.port}/?token=secret", b"{}", {})
    assert caplog.text == ""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a self-signed certificate for HOST in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    command = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={HOST} -addext subjectAltName=DNS:{HOST}"
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([openssl, *command.split(), *files], check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return both


async def test_tls_asks_for_the_certificate_of_the_name_although_the_connection_goes_to_a_number(
    certificate: Path,
) -> None:
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate)
    asked: list[str | None] = []
    serving.sni_callback = lambda _socket, name, _context: asked.append(name)
    trusting = ssl.create_default_context(cafile=certificate)
    async with receiving(answer("x"), tls=serving) as receiver:
        got = await caller(verify=trusting).post("t", f"https://{HOST}:{receiver.port}/", b"{}", {})
        with pytest.raises(CallProblem, match=r"^no trusted TLS connection was possible$"):
            await caller(verify=trusting).post("t", f"https://other.example.test:{receiver.port}/", b"{}", {})
        with pytest.raises(CallProblem, match=r"^no trusted TLS connection was possible$"):
            await caller().post("t", f"https://{HOST}:{receiver.port}/", b"{}", {})
    assert got.body == b"x"
    assert asked == [HOST, "other.example.test", HOST]
    assert len(receiver.received) == 1
