"""The Claude summarizer through the real SDK, against a fake API: what it sends and what it makes of replies."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from compaction import errors
from compaction.core.messages import Usage
from compaction.ports import SummaryRequest
from compaction.summarizers.claude import ClaudeSummarizer
from compaction.summarizers.models import ModelLimits
from ops.fake_provider import FakeProvider, FakeProviderThread
from tests.unit.summarizers.stage import KEY, Heard, MakeSummarizer, failed, plain_body, raw_server

pytestmark = pytest.mark.anyio


async def test_a_reply_comes_back_with_text_usage_model_and_request_id(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"thinking": "hm", "text": "<summary>all of it</summary>", "chunks": 3}])
    reply = await make().summarize(asked, Heard())
    assert reply.text == "<summary>all of it</summary>"
    assert (reply.stop_reason, reply.model, reply.block_types) == ("end_turn", "claude-haiku-4-5", ("thinking", "text"))
    assert reply.usage == Usage(input_tokens=fake.calls[0].facts["input_tokens"], output_tokens=8)
    assert reply.request_id == "req_fake00000001"
    assert not reply.degraded


async def test_progress_grows_to_the_length_of_the_text(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": "x" * 100, "chunks": 4, "chunk_delay_s": 0.06}])
    heard = Heard()
    await make().summarize(asked, heard)
    assert heard.counts == sorted(heard.counts)
    assert heard.counts[-1] == 100
    assert len(set(heard.counts)) > 1


async def test_the_body_goes_out_byte_for_byte_with_the_sdks_headers(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    long = replace(asked, system_prompt="s" * 1_000_000, kind="shared_prefix")
    await make().summarize(long, Heard())
    body, betas = plain_body(long)
    call = fake.calls[0]
    assert (call.sha256, call.body_bytes) == (hashlib.sha256(body).hexdigest(), len(body))
    assert call.headers["anthropic-version"] == "2026-10-21"
    assert call.headers["anthropic-beta"] == ",".join(betas)
    assert call.headers["content-type"] == "application/json"
    assert call.headers["user-agent"].startswith("AsyncAnthropic/Python")
    assert call.headers["x-stainless-retry-count"] == "0"


async def test_the_key_goes_as_a_bearer(make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest) -> None:
    fake.play({"api_key": KEY})
    assert (await make().summarize(asked, Heard())).stop_reason == "end_turn"
    assert isinstance(await failed(make(api_key="sk-wrong"), asked), errors.AuthError)


async def test_key_and_address_come_from_the_environment_when_nobody_gives_them(
    fake: FakeProvider, asked: SummaryRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
    fake.play({"api_key": KEY})
    summarizer = ClaudeSummarizer(build_body=plain_body)
    assert (await summarizer.summarize(asked, Heard())).stop_reason == "end_turn"
    await summarizer.aclose()


def test_an_empty_address_in_the_environment_means_the_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    assert ClaudeSummarizer(api_key=KEY)._base_url == "https://api.anthropic.com"
    assert ClaudeSummarizer(api_key=KEY, base_url="http://gateway")._base_url == "http://gateway"
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    assert ClaudeSummarizer(api_key=KEY)._base_url is None


async def test_a_token_serves_where_there_is_no_key(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play({"api_key": "token-1"})
    assert (await make(api_key="", auth_token="token-1").summarize(asked, Heard())).stop_reason == "end_turn"


async def test_the_default_body_is_the_one_of_core_wire(fake: FakeProvider, asked: SummaryRequest) -> None:
    summarizer = ClaudeSummarizer(api_key=KEY, base_url=fake.url)
    await summarizer.summarize(asked, Heard())
    await summarizer.aclose()
    body = fake.calls[0].json()
    assert (body["model"], body["max_tokens"], body["stream"]) == ("claude-haiku-4-5", 20_000, True)
    assert "do it" in json.dumps(body["messages"])


async def test_a_gateway_that_does_not_stream_is_understood(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    message = {
        "type": "message",
        "model": "m",
        "content": [{"type": "text", "text": "whole"}],
        "stop_reason": "end_turn",
    }
    fake.play([{"raw": json.dumps(message), "content_type": "application/json"}])
    reply = await make().summarize(asked, Heard())
    assert (reply.text, reply.model) == ("whole", "m")


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "tool_use", "model_context_window_exceeded"])
async def test_a_stop_reason_is_handed_on_unjudged(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest, reason: str
) -> None:
    fake.play([{"text": "", "stop_reason": reason}])
    reply = await make().summarize(asked, Heard())
    assert (reply.text, reply.stop_reason, reply.block_types) == ("", reason, ())


async def test_one_connection_serves_one_call_after_the_other(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    summarizer = make()
    for _ in range(3):
        await summarizer.summarize(asked, Heard())
    assert fake.open_connections == 1


async def test_many_calls_at_once_get_their_own_replies(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    fake.play([{"text": f"reply {number}", "chunks": 3, "chunk_delay_s": 0.01} for number in range(50)])
    summarizer = make()
    replies = await asyncio.gather(*(summarizer.summarize(asked, Heard()) for _ in range(50)))
    assert sorted(reply.text for reply in replies) == sorted(f"reply {number}" for number in range(50))


def test_a_summarizer_serves_one_loop_after_another(asked: SummaryRequest) -> None:
    with FakeProviderThread() as served:
        summarizer = ClaudeSummarizer(api_key=KEY, base_url=served.url, build_body=plain_body)

        async def once() -> str | None:
            reply = await summarizer.summarize(asked, Heard())
            await summarizer.aclose()
            return reply.stop_reason

        assert [asyncio.run(once()) for _ in range(2)] == ["end_turn", "end_turn"]


async def test_the_end_of_the_text_is_enough_when_the_connection_does_not_end(asked: SummaryRequest) -> None:
    events = (
        b'data: {"type":"message_start","message":{"model":"m"}}\n\n'
        b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"done"}}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n'
    )

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + events)
        await writer.drain()
        await asyncio.sleep(60)

    async with raw_server(answer) as url:
        summarizer = ClaudeSummarizer(api_key=KEY, base_url=url, build_body=plain_body)
        assert (await summarizer.summarize(asked, Heard())).text == "done"
        await summarizer.aclose()


async def test_tokens_are_counted_by_the_provider(
    make: MakeSummarizer, fake: FakeProvider, asked: SummaryRequest
) -> None:
    summarizer = make()
    counted = await summarizer.count_tokens(asked)
    await summarizer.summarize(asked, Heard())
    assert counted == fake.calls[0].facts["input_tokens"]
    assert [call.path for call in fake.ledger.calls] == ["/v1/messages/count_tokens", "/v1/messages"]


def respond(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_a_platform_that_does_not_count_gives_none(asked: SummaryRequest, status: int) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(respond(status, b"{}"))

    async with raw_server(answer) as url:
        summarizer = ClaudeSummarizer(api_key=KEY, base_url=url, build_body=plain_body)
        assert await summarizer.count_tokens(asked) is None
        await summarizer.aclose()


COUNTS = [
    (401, b"{}", errors.AuthError),
    (529, b"{}", errors.Overloaded),
    (200, b'{"input_tokens": "many"}', errors.ApiError),
    (200, b'{"input_tokens": -1}', errors.ApiError),
    (200, b"[]", errors.ApiError),
    (200, b"hello", errors.ApiError),
]


@pytest.mark.parametrize(("status", "body", "kind"), COUNTS)
async def test_a_count_that_fails_raises_like_a_summary(
    asked: SummaryRequest, status: int, body: bytes, kind: type[errors.ProviderError]
) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(respond(status, body))

    async with raw_server(answer) as url:
        summarizer = ClaudeSummarizer(api_key=KEY, base_url=url, build_body=plain_body)
        with pytest.raises(kind):
            await summarizer.count_tokens(asked)
        await summarizer.aclose()


async def test_limits_come_from_the_models_api_and_are_asked_for_once(make: MakeSummarizer, fake: FakeProvider) -> None:
    fake.play({"windows": {"claude-haiku-4-5": 123_456}})
    summarizer = make()
    found = [await summarizer.limits("claude-haiku-4-5") for _ in range(3)]
    assert found == [ModelLimits(123_456, 64_000, source="api")] * 3
    assert [call.path for call in fake.ledger.calls] == ["/v1/models/claude-haiku-4-5"]


async def test_a_model_that_the_models_api_does_not_know_has_no_limits(make: MakeSummarizer) -> None:
    assert await make().limits("nobody-knows-it") is None


async def test_without_any_api_there_are_no_limits(make: MakeSummarizer) -> None:
    assert await make(base_url="http://127.0.0.1:1").limits("claude-haiku-4-5") is None


def test_the_sdk_is_loaded_by_a_summarizer_and_not_by_its_module() -> None:
    code = (
        "import sys; from compaction.summarizers import claude; assert 'anthropic' not in sys.modules; "
        "claude.ClaudeSummarizer(); assert 'anthropic' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_its_name_is_the_one_of_the_settings() -> None:
    assert ClaudeSummarizer().name == "claude"
