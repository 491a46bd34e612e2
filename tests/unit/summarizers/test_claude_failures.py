"""How calls to Claude fail: every trouble becomes one error of ours, after one call, with nothing private in it."""

from __future__ import annotations

import asyncio
import gc
import logging
import pickle
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compaction import errors
from compaction.core.messages import Message
from compaction.ports import SummaryRequest
from compaction.summarizers.claude import ClaudeSummarizer
from compaction.summarizers.watchdog import Deadlines
from ops.fake_provider import FakeProvider
from tests.unit.summarizers.stage import KEY, SECRET, Heard, MakeSummarizer, Marked, failed, plain_body, raw_server

pytestmark = pytest.mark.anyio
QUICK = Deadlines(total_seconds=30, idle_seconds=0.2, first_event_seconds=0.2)


def anthropic(kind: str, message: str = "it did not work") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


TOO_LONG = anthropic("invalid_request_error", f"prompt is too long: 30 tokens > 20 maximum {SECRET}")
STEPS = [  # step, class, whether the job tries again
    ({"status": 400, "body": TOO_LONG}, errors.PromptTooLong, False),
    ({"status": 500, "body": {"error": {"message": "Input is too long for model."}}}, errors.PromptTooLong, False),
    ({"status": 413, "body": anthropic("request_too_large")}, errors.PromptTooLong, False),
    ({"status": 401, "body": anthropic("authentication_error")}, errors.AuthError, False),
    ({"status": 402, "body": ""}, errors.BillingError, False),
    ({"status": 404, "body": anthropic("not_found_error", "model: gone")}, errors.ModelNotFound, False),
    ({"status": 429, "body": anthropic("rate_limit_error"), "headers": {"retry-after": "7"}}, errors.RateLimited, True),
    ({"status": 529, "body": anthropic("overloaded_error")}, errors.Overloaded, True),
    ({"status": 504, "body": "<html>"}, errors.ProviderTimeout, True),
    ({"status": 500, "body": anthropic("api_error", SECRET)}, errors.ApiError, True),
    ({"status": 400, "body": anthropic("invalid_request_error", f"messages.0: {SECRET}")}, errors.ApiError, False),
    ({"status": 400, "body": ""}, errors.ApiError, False),
    ({"status": 307, "body": "", "headers": {"location": "http://127.0.0.1:1/v1/messages"}}, errors.ApiError, False),
    ({"sse_error": {"type": "overloaded_error", "message": "x"}, "after_text": "half"}, errors.Overloaded, True),
    ({"sse_error": {"type": "api_error", "message": SECRET}}, errors.ApiError, True),
    ({"text": "whole text", "disconnect_after_chars": 5}, errors.ApiError, True),
    ({"text": "whole text", "end_after_chars": 5}, errors.ApiError, True),
    ({"empty_stream": True}, errors.ApiError, True),
    ({"raw": "<html><body>sign in</body></html>"}, errors.ApiError, True),
    ({"raw": "", "content_type": "text/event-stream"}, errors.ApiError, True),
    ({"raw": '{"ok": true}', "content_type": "application/json"}, errors.ApiError, True),
    ({"raw": "{half", "content_type": "application/json"}, errors.ApiError, True),
    ({"raw": '{"error": {"type": "overloaded_error"}}', "content_type": "application/json"}, errors.Overloaded, True),
    ({"raw": "data: {half\n\n", "content_type": "text/event-stream"}, errors.ApiError, True),
]


@pytest.mark.parametrize(("step", "kind", "again"), STEPS)
async def test_each_kind_of_trouble_is_one_error_after_one_call(
    fake: FakeProvider, asked: SummaryRequest, step: dict[str, Any], kind: type[errors.ProviderError], again: bool
) -> None:
    fake.play([step])
    summarizer = ClaudeSummarizer(api_key=KEY, base_url=fake.url, build_body=plain_body)
    found = await failed(summarizer, asked)
    await summarizer.aclose()
    assert type(found) is kind
    assert found.retryable is again
    assert found.request_id == "req_fake00000001"
    assert len(fake.calls) == 1


async def test_status_numbers_and_retry_after_survive_the_way_through_the_sdk(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"status": 429, "body": anthropic("rate_limit_error"), "headers": {"retry-after": "7"}}])
    found = await failed(make(), asked)
    assert (found.status, found.retry_after_seconds) == (429, 7.0)
    fake.play([{"status": 400, "body": TOO_LONG}])
    long = await failed(make(), asked)
    assert isinstance(long, errors.PromptTooLong)
    assert (long.status, long.gap, long.actual, long.limit) == (400, 10, 30, 20)


async def test_a_provider_that_never_answers_is_given_up(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"delay_s": 600}])
    assert isinstance(await failed(make(deadlines=QUICK), asked), errors.ProviderTimeout)


async def test_a_stream_that_goes_silent_is_given_up(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": "one two", "chunks": 2, "chunk_delay_s": 600}])
    assert isinstance(await failed(make(deadlines=QUICK), asked), errors.ProviderTimeout)


async def test_a_stream_that_never_ends_is_given_up_in_all(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": "x" * 10_000, "chunks": 10_000, "chunk_delay_s": 0.05}])
    found = await failed(make(deadlines=Deadlines(total_seconds=2)), asked)
    assert isinstance(found, errors.ProviderTimeout)
    assert found.request_id == "req_fake00000001"


async def test_a_slow_but_steady_stream_is_left_alone(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": "x" * 25, "chunks": 25, "chunk_delay_s": 0.1}])  # longer in all than what may be silent
    summarizer = make(deadlines=Deadlines(idle_seconds=2, first_event_seconds=2))
    assert (await summarizer.summarize(asked, Heard())).text == "x" * 25


async def test_a_reply_over_its_limit_is_refused(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": "x" * 10_001}])
    found = await failed(make(max_reply_bytes=10_000), asked)
    assert isinstance(found, errors.ApiError)
    assert not found.retryable


async def test_an_endless_error_body_is_read_in_part(asked: SummaryRequest) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 X\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"prompt and words " * 10_000)
            await writer.drain()

    async with raw_server(answer) as url:
        summarizer = ClaudeSummarizer(api_key=KEY, base_url=url, build_body=plain_body)
        assert isinstance(await failed(summarizer, asked), errors.ApiError)
        await summarizer.aclose()


async def test_a_server_that_answers_rubbish_is_a_failed_connection(asked: SummaryRequest) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")

    async with raw_server(answer) as url:
        summarizer = ClaudeSummarizer(api_key=KEY, base_url=url, build_body=plain_body)
        found = await failed(summarizer, asked)
        await summarizer.aclose()
    assert isinstance(found, errors.ApiError)
    assert found.retryable


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "nonsense", "http://"])
async def test_an_address_that_is_none_is_told_and_not_tried_again(
    make: MakeSummarizer, asked: SummaryRequest, url: str
) -> None:
    found = await failed(make(base_url=url), asked)
    assert isinstance(found, errors.ApiError)
    assert not found.retryable
    assert "ANTHROPIC_BASE_URL" in found.message


async def test_nobody_listening_is_tried_again(make: MakeSummarizer, asked: SummaryRequest) -> None:
    found = await failed(make(base_url="http://127.0.0.1:1"), asked)
    assert isinstance(found, errors.ApiError)
    assert found.retryable


async def test_without_a_key_no_call_is_made(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    assert isinstance(await failed(make(api_key=None), asked), errors.AuthError)
    assert fake.ledger.calls == []


async def test_a_key_that_cannot_stand_in_a_header_is_told_as_a_bad_key(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    found = await failed(make(api_key=f"{KEY}\nfrom a file with a line end"), asked)
    assert isinstance(found, errors.AuthError)
    assert KEY not in str(found)
    assert fake.ledger.calls == []


async def test_cancelling_closes_the_connection(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": "x" * 1_000, "chunks": 1_000, "chunk_delay_s": 0.5}])
    heard = Heard()
    task = asyncio.create_task(make().summarize(asked, heard))
    while not heard.counts:  # noqa: ASYNC110 - the progress is a plain object
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while fake.calls[0].outcome == "open":  # noqa: ASYNC110 - the test's time limit is the bound
        await asyncio.sleep(0.01)
    assert fake.calls[0].outcome == "disconnected"
    assert fake.open_connections == 0


async def test_cancelling_while_nothing_has_come_closes_the_connection(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"delay_s": 600}])
    task = asyncio.create_task(make().summarize(asked, Heard()))
    while not fake.calls:  # noqa: ASYNC110 - the ledger is a plain object
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while fake.calls[0].outcome == "open":  # noqa: ASYNC110 - the test's time limit is the bound
        await asyncio.sleep(0.01)
    assert fake.open_connections == 0


def caught(outcomes: Sequence[object]) -> str:
    """All that an error of ours can tell: itself, what it hangs on to, the variables of the frames it came through."""
    error = outcomes[0]
    if not isinstance(error, BaseException):
        return ""
    assert error.__context__ is None
    assert error.__cause__ is None
    frames = traceback.TracebackException(type(error), error, error.__traceback__, capture_locals=True)
    return "".join(frames.format()) + repr(error) + repr(vars(error)) + repr(pickle.dumps(error))


PRIVATE_STEPS = [step for step, _, _ in STEPS] + [{"good_summary": {}}, {"delay_s": 600}]


@pytest.mark.parametrize("step", PRIVATE_STEPS)
async def test_neither_logs_nor_errors_hold_the_transcript_or_the_key(
    make: MakeSummarizer,
    fake: FakeProvider,
    asked: SummaryRequest,
    step: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    fake.play([step])
    summarizer = make(deadlines=QUICK)
    caplog.set_level(logging.DEBUG)
    told = caught(await asyncio.gather(summarizer.summarize(asked, Heard()), return_exceptions=True))
    told += caplog.text + repr([vars(record) for record in caplog.records])
    assert SECRET not in told
    assert KEY not in told


class MarkedList(list[Message]):
    """Messages that tell when they go."""

    marks: list[bool]

    def __del__(self) -> None:
        self.marks.append(True)


async def test_while_the_model_writes_neither_messages_nor_body_are_kept(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": "x" * 100, "chunks": 100, "chunk_delay_s": 0.5}])
    bodies: list[bool] = []
    messages = MarkedList(asked.messages)
    messages.marks = []
    marks = messages.marks

    def body(request: SummaryRequest) -> tuple[bytes, tuple[str, ...]]:
        return Marked(plain_body(request)[0].replace(b'"stream": true', b'"stream":true'), bodies), ()

    heard = Heard()
    request = SummaryRequest(
        kind="fresh", model="m", messages=messages, system_prompt="s", user_prompt="u", max_output_tokens=10
    )
    task = asyncio.create_task(make(build_body=body).summarize(request, heard))
    del request, messages
    while not heard.counts:  # noqa: ASYNC110 - the progress is a plain object
        await asyncio.sleep(0.01)
    gc.collect()
    assert (marks, bodies) == ([True], [True])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
