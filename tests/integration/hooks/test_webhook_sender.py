"""One try of a delivery against real receivers: signed for whoever verifies, and judged by the status alone."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from compaction.core.addresses import AddressRules, Allowance
from compaction.core.webhooks import Attempt
from compaction.hooks.guarded import GuardedCaller
from compaction.hooks.signing import is_secret, new_secret
from compaction.webhooks.sender import Letter, Sender, message_id
from tests.integration.hooks.receiver import Receiver, answer, receiving

pytestmark = pytest.mark.anyio

INNER = AddressRules(Allowance(inner=True), ports=None)
DELIVERY = "01a22ed7-0f10-7273-a87a-f24b1a1fdc46"
PAYLOAD = {"type": "compaction.failed", "timestamp": "2026-11-30T20:30:21Z", "data": {"job_id": "j-1"}}
OLD, NEW = new_secret(), new_secret()


def letter(receiver: Receiver, *, secrets: Sequence[str] = (NEW,), path: str = "/news") -> Letter:
    return Letter(DELIVERY, "acme", f"http://127.0.0.1:{receiver.port}{path}", secrets, PAYLOAD)


async def tried(letter: Letter, *, seconds: float = 5.0, rules: AddressRules = INNER) -> Attempt:
    return await Sender(GuardedCaller(rules), seconds).send(letter)


async def test_what_is_sent_can_be_verified_with_the_library() -> None:
    async with receiving(answer("", status="204 No Content")) as receiver:
        assert await tried(letter(receiver)) == Attempt(status=204)
    (got,) = receiver.received
    assert got.line == "POST /news HTTP/1.1"
    assert Webhook(NEW).verify(got.body, got.headers) == PAYLOAD
    assert got.headers["webhook-id"] == message_id(DELIVERY) == "msg_01a22ed70f107273a87af24b1a1fdc46"
    assert got.headers["content-type"] == "application/json"
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(got.body, got.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(got.body + b" ", got.headers)


async def test_while_a_secret_is_changed_both_verify() -> None:
    async with receiving(answer("{}")) as receiver:
        assert (await tried(letter(receiver, secrets=(NEW, OLD)))).delivered
    (got,) = receiver.received
    for secret in (NEW, OLD):
        assert Webhook(secret).verify(got.body, got.headers) == PAYLOAD
    assert len(got.headers["webhook-signature"].split()) == 2


async def test_each_try_has_the_same_id_and_body() -> None:
    async with receiving(answer("{}", status="500 Oh")) as receiver:
        for _ in range(2):
            assert await tried(letter(receiver)) == Attempt(status=500)
    first, second = receiver.received
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)


@pytest.mark.parametrize(
    ("said", "seconds"), [("90", 90.0), ("99999999", 3_600.0), ("-5", 0.0), ("soon", None), ("1" * 5_000, None)]
)
async def test_the_pause_that_a_receiver_asks_for_is_read_up_to_an_hour(said: str, seconds: float | None) -> None:
    async with receiving(answer("", status="429 Slow", headers=f"Retry-After: {said}\r\n")) as receiver:
        assert await tried(letter(receiver)) == Attempt(status=429, retry_after_seconds=seconds)


async def test_a_redirect_is_not_followed() -> None:
    async with receiving(answer("{}")) as elsewhere:
        there = f"Location: http://127.0.0.1:{elsewhere.port}/\r\n"
        for status in ("301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"):
            async with receiving(answer("", status=status, headers=there)) as receiver:
                attempt = await tried(letter(receiver))
            assert (attempt.status, attempt.delivered, attempt.error) == (int(status[:3]), False, "http_status")
    assert elsewhere.connections == 0


async def test_a_receiver_that_says_nothing_costs_the_timeout_and_no_more() -> None:
    async with receiving(silent=True) as receiver:
        assert await tried(letter(receiver), seconds=0.3) == Attempt(problem="timeout")
        await receiver.hung_up.wait()


async def test_a_receiver_that_talks_for_ever_is_cut_off() -> None:
    flood = [b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", *[b"x" * 16_384] * 8]
    async with receiving(flood) as receiver:
        assert await tried(letter(receiver)) == Attempt(problem="answer_too_large")


@pytest.mark.parametrize(
    ("pieces", "resets", "code"),
    [
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], False, "bad_answer"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort"], True, "connection_lost"),
        ([b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"], False, "bad_answer"),
    ],
)
async def test_what_is_no_answer_is_told_by_a_code(pieces: Sequence[bytes], *, resets: bool, code: str) -> None:
    async with receiving(pieces, resets=resets) as receiver:
        attempt = await tried(letter(receiver))
    assert (attempt.error, attempt.delivered) == (code, False)


async def test_nobody_there_is_unreachable() -> None:
    async with receiving() as receiver:
        gone = letter(receiver)
    assert await tried(gone) == Attempt(problem="unreachable")


async def test_the_operators_own_network_is_closed_unless_it_is_opened() -> None:
    async with receiving(answer("{}")) as receiver:
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"):  # noqa: S104 - refused
            url = f"http://{host}:{receiver.port}/"
            attempt = await tried(Letter(DELIVERY, "acme", url, (NEW,), PAYLOAD), rules=AddressRules(ports=None))
            assert attempt.error == "address_refused", host
        closed = Letter(DELIVERY, "acme", f"http://127.0.0.1:{receiver.port}/", (NEW,), PAYLOAD)
        assert (await tried(closed, rules=AddressRules(Allowance(inner=True)))).error == "address_refused"  # its port
    assert receiver.connections == 0


def test_a_new_secret_has_256_random_bits() -> None:
    assert is_secret(OLD)
    assert len(base64.b64decode(OLD.removeprefix("whsec_"))) == 32
    assert OLD != NEW


def test_neither_address_nor_secret_is_in_a_letters_repr() -> None:
    shown = repr(Letter(DELIVERY, "acme", "https://x.example.com/?token=hidden", (NEW,), PAYLOAD))
    assert "hidden" not in shown
    assert NEW not in shown
