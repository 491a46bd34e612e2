"""Webhooks at the receiver's side: is this call ours, and what does it say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from compaction.client.errors import ForgedWebhook
from compaction.client.shapes import WebhookNews
from compaction.core import jsonbytes


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes | str) -> WebhookNews:
    """What the webhook says, once its signature and its time were checked. `body` must be as it came, not parsed.

    `webhook-id` among the headers is the same in each try of a delivery: remember it, and act once. Raises
    ForgedWebhook, and ImportError where the library `standardwebhooks` is missing.
    """
    try:
        from standardwebhooks import Webhook, WebhookVerificationError  # noqa: PLC0415 - wanted by receivers alone
    except ImportError:
        raise ImportError("verify_webhook needs the library standardwebhooks: pip install standardwebhooks") from None
    given = {name.lower(): value for name, value in headers.items()}
    data = body.encode() if isinstance(body, str) else body
    checker = Webhook(secret)  # a secret that is none is the caller's mistake: ValueError
    try:
        checker.verify(data, given, json_parse=False)
    except WebhookVerificationError as error:
        raise ForgedWebhook(f"This webhook is not to be believed: {error}.") from None
    except (ValueError, OverflowError):  # a body that is no UTF-8, a signature that is no base64
        raise ForgedWebhook("This webhook is not to be believed: it is not well formed.") from None
    return cast("WebhookNews", jsonbytes.decode(data))
