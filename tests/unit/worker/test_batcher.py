from __future__ import annotations

import json
import re

import pytest

from compaction.core.bulk import Load
from compaction.core.messages import Usage
from compaction.errors import Overloaded, PromptTooLong
from compaction.ports import BatchAnswer
from compaction.store.bulk_batches import Asked
from worker import batch_replay, batcher

MESSAGE = {
    "id": "msg_1",
    "content": [
        {"type": "thinking", "thinking": "…"},
        {"type": "text", "text": "one "},
        {"type": "text", "text": "two"},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1_000_000, "output_tokens": 100_000},
    "model": "claude-haiku-4-5",
}


def errored(kind: str, message: str = "no") -> BatchAnswer:
    error = {"type": "error", "error": {"type": kind, "message": message}}
    return BatchAnswer("item-1-1", "errored", error)


def test_a_request_has_another_name_each_time_it_is_sent() -> None:
    names = [batcher.custom_id(7, feeds) for feeds in (1, 2)]
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert [batcher._place(name) for name in names] == [(7, 1), (7, 2)]


@pytest.mark.parametrize("name", ["", "mine", "item-7", "item-7-x", "other-7-1", "item-7-1-1"])
def test_a_strangers_name_is_nobodys(name: str) -> None:
    assert batcher._place(name) is None


def test_a_reply_is_kept_and_paid_at_half_the_price() -> None:
    """By hand: a million tokens in at $1 and 100,000 out at $5 are $1.50; in a batch $0.75."""
    judged = batcher._judged(1, Asked(1, 0, b"[]"), BatchAnswer("item-1-1", "succeeded", MESSAGE))
    assert (judged.state, judged.spent.tokens, float(judged.spent.usd)) == ("batched", 1_100_000, 0.75)
    (kept,) = json.loads(judged.answers or b"")
    reply = batch_replay.reply_in(kept["document"], "unknown")
    assert (reply.text, reply.stop_reason, reply.usage) == ("one two", "end_turn", Usage(1_000_000, 100_000))


def test_answers_are_kept_in_their_order() -> None:
    first = batcher._judged(
        1, Asked(1, 0, b"[]"), errored("invalid_request_error", "prompt is too long: 3 tokens > 2 maximum")
    )
    second = batcher._judged(1, Asked(2, 0, first.answers or b""), BatchAnswer("item-1-2", "succeeded", MESSAGE))
    assert [answer["kind"] for answer in json.loads(second.answers or b"")] == ["errored", "succeeded"]
    assert first.spent == Load()


def test_a_refusal_in_a_batch_means_what_it_means_outside() -> None:
    refused = errored("invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
    error = batch_replay.refusal_in(refused.document)
    assert isinstance(error, PromptTooLong)
    assert error.gap == 50_000
    assert isinstance(batch_replay.refusal_in(errored("overloaded_error").document), Overloaded)


@pytest.mark.parametrize(
    ("answer", "misses", "expected"),
    [
        (BatchAnswer("item-1-1", "expired"), 0, ("batched", None)),
        (BatchAnswer("item-1-3", "expired"), 2, ("expired", None)),
        (BatchAnswer("item-1-1", "canceled"), 0, ("cancelled", None)),
        (errored("overloaded_error"), 0, ("batched", None)),
        (errored("overloaded_error"), 2, ("failed", "overloaded")),
        (errored("api_error"), 1, ("batched", None)),
    ],
)
def test_what_passes_is_sent_again_and_given_up_after_three_times(
    answer: BatchAnswer, misses: int, expected: tuple[str, str | None]
) -> None:
    judged = batcher._judged(1, Asked(7, misses, b"[]"), answer)
    assert (judged.state, judged.error_code) == expected
    assert judged.answers is None
    assert judged.missed is (answer.kind != "canceled")


def test_cuts_do_not_use_up_the_tries_of_what_passes() -> None:
    """Cut, expired, cut, overloaded, cut, expired: only the third of what passes is one too many."""
    cut = errored("invalid_request_error", "prompt is too long: 3 tokens > 2 maximum")
    expired, overloaded = BatchAnswer("item-1-1", "expired"), errored("overloaded_error")
    states, asked = [], Asked(1, 0, b"[]")
    for answer in (cut, expired, cut, overloaded, cut, expired):
        judged = batcher._judged(1, asked, answer)
        states.append(judged.state)
        asked = Asked(asked.feeds + 1, asked.misses + judged.missed, judged.answers or asked.answers)
    assert states == ["batched"] * 5 + ["expired"]
    assert len(json.loads(asked.answers)) == 3


def test_a_batch_takes_requests_until_it_is_full_and_always_one() -> None:
    pack = batcher._Pack(max_bytes=1_000)
    assert pack.takes(b"x" * 5_000)
    pack.add(1, b"x" * 500)
    assert not pack.is_full
    assert pack.takes(b"x" * 100)
    assert not pack.takes(b"x" * 101)  # 500 + 101 and twice the 200 bytes beside are over 1,000
