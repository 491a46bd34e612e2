"""POSTs to addresses that tenants chose, without letting them reach into the operator's network.

The host is resolved here, once; the addresses are judged (`core.addresses`), and the connection goes to one of them by
its number, so that a second answer of the name server changes nothing. TLS still asks for the certificate of the host's
name. No redirects, proxies, cookies, decompression or connection reuse; the answer is read up to a limit.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import httpx2

from compaction import __version__
from compaction.core import addresses
from compaction.core.addresses import AddressRules
from compaction.core.retry_after import retry_after_seconds
from compaction.hooks.shares import Shares
from compaction.hooks.threads import Threads

MAX_ANSWER_BYTES = 64 * 1024  # instructions and messages at their limits need less
MAX_URL_CHARS = 2_048  # as browsers and proxies agree
MAX_TRIED = 4  # addresses of one host; the first is the one that answers
MAX_CALLS = 256  # connections at once in a process; far below the 1,024 files that a process may open by default
MAX_TENANT_CALLS = 32  # of them for one tenant; who waits longer than the deadline gets no answer
MAX_TENANT_LOOKUPS = 8  # names resolved at once for one tenant, those included that a name server never answers
CONNECT_SECONDS = 3.0  # for one address, so that a dead one leaves time for the next
MAX_CAUSES = 10  # of one error: httpx2 wraps httpcore2, which wraps anyio, which wraps ssl
PORTS = {"http": 80, "https": 443}
_LIMITS = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # whoever calls sets a deadline for the whole


Resolve = Callable[[str, int], Sequence[str]]  # (host, port) → addresses as text


class CallProblem(Exception):
    """The call came to nothing; the text says why, in our words and without the address. `code` is for programs."""

    def __init__(self, text: str, *, code: str = "unreachable") -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    retry_after_seconds: float | None = None  # what it asks for with a refusal, up to an hour


def resolved(host: str, port: int) -> Sequence[str]:
    """The host's addresses as the system finds them, the preferred one first. Raises OSError or UnicodeError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(address[0]) for *_, address in found]


def checked(url: str, rules: AddressRules) -> httpx2.URL:
    """The address in its parts, if it may be called as far as one can say without resolving it. Raises CallProblem."""
    try:
        target = httpx2.URL(url) if len(url) <= MAX_URL_CHARS else None
    except httpx2.InvalidURL:
        target = None
    if target is None or not target.host:
        raise CallProblem(
            f"the address must be a whole http or https URL of at most {MAX_URL_CHARS:,} characters",
            code="address_refused",
        )
    if target.scheme not in PORTS:
        raise CallProblem("the address must begin with https:// or http://", code="address_refused")
    if target.userinfo:
        raise CallProblem("the address must not hold a user name or a password", code="address_refused")
    if rules.ports is not None and _port(target) not in rules.ports:
        raise CallProblem("the address's port is not among those allowed here", code="address_refused")
    if addresses.is_address(target.host):
        _judged([target.host], rules)
    return target


class GuardedCaller:
    """Makes guarded calls; one per event loop. `verify` replaces the usual certificates, `resolve` the name server."""

    def __init__(
        self, rules: AddressRules, *, resolve: Resolve = resolved, verify: ssl.SSLContext | None = None
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._verify = verify
        self._calls = asyncio.Semaphore(MAX_CALLS)
        self._tenant_calls = Shares(lambda: asyncio.Semaphore(MAX_TENANT_CALLS))
        self._tenant_lookups = Shares(lambda: Threads("compactd-resolve", MAX_TENANT_LOOKUPS))

    async def post(self, tenant: str, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Sends `body` once and reads the answer, whatever its status. Raises CallProblem. Sets no deadline itself.

        `tenant` is who pays: a call waits while the tenant has as many under way as one may have.
        """
        target = checked(url, self._rules)
        request = httpx2.Request(
            "POST", target, headers={"User-Agent": f"compactd/{__version__}", **headers}, content=body
        )
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with self._tenant_calls.of(tenant), self._calls:
                return await self._first_reached(request, body, await self._addresses(tenant, target))
        except httpx2.ProtocolError:
            raise CallProblem("answered with something that is no HTTP", code="bad_answer") from None
        except httpx2.TransportError:
            raise CallProblem("the connection broke before the answer was complete", code="connection_lost") from None

    async def _addresses(self, tenant: str, target: httpx2.URL) -> list[str]:
        if addresses.is_address(target.host):
            return [target.host]
        try:
            look = partial(self._resolve, target.raw_host.decode("ascii"), _port(target))
            found = await self._tenant_lookups.of(tenant).run(look)
        except (OSError, UnicodeError):
            raise CallProblem("the host's name cannot be resolved", code="name_not_resolved") from None
        return _judged(found, self._rules)

    async def _first_reached(self, request: httpx2.Request, body: bytes, found: Sequence[str]) -> Answer:
        untrusted = False
        for address in found[:MAX_TRIED]:
            try:
                return await self._sent(request, body, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                untrusted = untrusted or _untrusted(error)
        if untrusted:
            raise CallProblem("no trusted TLS connection was possible", code="tls_failed")
        raise CallProblem("nobody answers at the address")

    async def _sent(self, request: httpx2.Request, body: bytes, address: str) -> Answer:
        """The request to this very address; Host header and TLS keep the host's name."""
        pinned = httpx2.Request(
            "POST",
            request.url.copy_with(host=address),
            headers=request.headers,
            content=body,
            extensions={"timeout": _LIMITS.as_dict(), "sni_hostname": request.url.raw_host.decode("ascii")},
        )
        async with httpx2.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            response = await transport.handle_async_request(pinned)
            try:
                waits = retry_after_seconds(response.headers, now_seconds=time.time())
                return Answer(response.status_code, await _limited(response), waits)
            finally:
                await response.aclose()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._verify or httpx2.create_ssl_context()


async def _limited(response: httpx2.Response) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise CallProblem("answered compressed, although it was asked not to", code="bad_answer")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise CallProblem(f"answered with more than {MAX_ANSWER_BYTES:,} bytes", code="answer_too_large")
    return bytes(body)


def _judged(found: Sequence[str], rules: AddressRules) -> list[str]:
    """The addresses that may be called. Raises CallProblem when there is none."""
    refusals = {address: addresses.refusal(address, rules.allowance) for address in found}
    allowed = [address for address, refusal in refusals.items() if refusal is None]
    if not allowed:
        kinds = sorted({refusal for refusal in refusals.values() if refusal is not None})
        words = ", ".join(kinds) or "it has none"
        raise CallProblem(f"the host's address is not allowed here ({words})", code="address_refused")
    return allowed


def _port(target: httpx2.URL) -> int:
    return target.port or PORTS[target.scheme]


def _untrusted(error: BaseException) -> bool:
    """Whether TLS is what a connection failed for."""
    return any(isinstance(cause, ssl.SSLError) for cause in itertools.islice(_causes(error), MAX_CAUSES))


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
