from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pytest

from compaction.client import ForgedWebhook, verify_webhook
from compaction.hooks.signing import new_secret, signed_headers

BODY = b'{"type":"compaction.succeeded","timestamp":"2026-11-30T08:00:00Z","data":{"job_id":"j1"}}'


def test_what_was_signed_with_the_secret_is_believed() -> None:
    secret = new_secret()
    headers = {name.title(): value for name, value in signed_headers(secret, "msg_1", datetime.now(UTC), BODY).items()}
    assert verify_webhook(secret, headers, BODY)["data"] == {"job_id": "j1"}
    assert verify_webhook(secret, headers, BODY.decode())["type"] == "compaction.succeeded"


def test_while_a_secret_is_rotated_either_one_will_do() -> None:
    old, new = new_secret(), new_secret()
    headers = signed_headers([new, old], "msg_1", datetime.now(UTC), BODY)
    assert verify_webhook(old, headers, BODY) == verify_webhook(new, headers, BODY)


@pytest.mark.parametrize("change", ["body", "secret", "time", "no headers", "no base64", "no utf-8", "huge time"])
def test_anything_else_is_not(change: str) -> None:
    secret, body, now = new_secret(), BODY, datetime.now(UTC)
    headers = signed_headers(secret, "msg_1", now - timedelta(hours=1) if change == "time" else now, body)
    match change:
        case "body":
            body = BODY.replace(b"j1", b"j2")
        case "secret":
            secret = new_secret()
        case "no headers":
            headers = {}
        case "no base64":
            headers["webhook-signature"] = "v1,%%%"
        case "no utf-8":
            body = b"\xff"
        case "huge time":
            headers["webhook-timestamp"] = "9" * 30
    with pytest.raises(ForgedWebhook):
        verify_webhook(secret, headers, body)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "standardwebhooks", None)
    with pytest.raises(ImportError, match="pip install standardwebhooks"):
        verify_webhook(new_secret(), {}, BODY)
