"""Signs what we send, the way Standard Webhooks does, so that a receiver knows that it comes from here and is new."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Sequence
from datetime import datetime

from standardwebhooks import Webhook

PREFIX = "whsec_"
MIN_SECRET_BYTES = 24  # both limits as Standard Webhooks gives them
MAX_SECRET_BYTES = 64
NEW_SECRET_BYTES = 32  # as many as the hash has
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def is_secret(text: str) -> bool:
    """Whether `text` is a secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64.

    The library takes less: it skips what is no base64, and a typing error would leave a short key.
    """
    encoded = text.removeprefix(PREFIX)
    if encoded == text or not _BASE64.fullmatch(encoded):
        return False
    try:
        return MIN_SECRET_BYTES <= len(base64.b64decode(encoded, validate=True)) <= MAX_SECRET_BYTES
    except binascii.Error:
        return False


def new_secret() -> str:
    """A secret drawn at random."""
    return PREFIX + base64.b64encode(secrets.token_bytes(NEW_SECRET_BYTES)).decode("ascii")


def signed_headers(secret: str | Sequence[str], message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The three headers of a signed message. `now` is in UTC, `body` in UTF-8.

    With several secrets there is a signature of each, as Standard Webhooks has it for a change from one to another.
    """
    given = (secret,) if isinstance(secret, str) else secret
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(one).sign(message_id, now, body.decode("utf-8")) for one in given),
    }
