from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from compaction.hooks.signing import is_secret, signed_headers

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
NOW = datetime(2026, 11, 30, 12, 0, 0, 900_000, tzinfo=UTC)


def test_a_message_is_signed_as_standard_webhooks_says() -> None:
    body = '{"session_id":"ü"}'.encode()
    headers = signed_headers(SECRET, "msg_1", NOW, body)
    expected = hmac.new(KEY, b"msg_1.1796040000." + body, hashlib.sha256).digest()
    assert headers == {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1796040000",
        "webhook-signature": "v1," + base64.b64encode(expected).decode(),
    }


def test_the_library_of_a_receiver_takes_the_signature() -> None:
    body = b'{"event":"pre_compact"}'
    assert Webhook(SECRET).verify(body, signed_headers(SECRET, "msg_2", datetime.now(UTC), body)) == {
        "event": "pre_compact"
    }


@pytest.mark.parametrize("size", [24, 25, 26, 64])
def test_a_secret_has_24_to_64_bytes(size: int) -> None:
    assert is_secret("whsec_" + base64.b64encode(b"\xff" * size).decode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        base64.b64encode(KEY).decode(),
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
        "whsec_" + base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        SECRET[:-1],  # a character lost
        SECRET + "\n",
        SECRET.replace("A", "!"),
        "whsec_" + "ä" * 40,
    ],
)
def test_anything_else_is_no_secret_although_the_library_would_take_some(text: str) -> None:
    assert not is_secret(text)
