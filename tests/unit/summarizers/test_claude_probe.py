"""Whether the provider can be used: asked at no cost, answered in the errors of every other call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from compaction.errors import ApiError, AuthError
from compaction.summarizers.claude import ClaudeSummarizer
from compaction.summarizers.extractive import ExtractiveSummarizer
from ops.fake_provider import FakeProvider

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def asking(
    script: Any,  # noqa: ANN401 - any JSON
    key: str = "sk-probe",
) -> AsyncIterator[tuple[ClaudeSummarizer, FakeProvider]]:
    async with FakeProvider(script) as fake:
        claude = ClaudeSummarizer(api_key=key, base_url=fake.url)
        try:
            yield claude, fake
        finally:
            await claude.aclose()


async def test_a_provider_that_works_is_asked_for_its_models_and_for_no_message() -> None:
    async with asking(None) as (claude, fake):
        await claude.probe()
        assert [(call.method, call.path) for call in fake.ledger.calls] == [("GET", "/v1/models")]
        assert fake.calls == []


async def test_a_refused_key_is_an_auth_error_that_quotes_nothing() -> None:
    async with asking({"api_key": "sk-the-right-one"}, key="sk-the-wrong-one") as (claude, _):
        with pytest.raises(AuthError) as refused:
            await claude.probe()
    assert "wrong" not in str(refused.value)
    assert refused.value.__cause__ is None


async def test_a_provider_that_is_away_is_an_api_error_to_try_again() -> None:
    claude = ClaudeSummarizer(api_key="sk-probe", base_url="http://127.0.0.1:1")
    with pytest.raises(ApiError) as away:
        await claude.probe()
    assert away.value.retryable
    await claude.aclose()


async def test_a_gateway_without_a_list_of_models_has_answered() -> None:
    async with asking(None) as (_, fake):
        claude = ClaudeSummarizer(api_key="sk-probe", base_url=f"{fake.url}/gateway")  # 404 for everything below
        await claude.probe()
        await claude.aclose()


async def test_the_extractive_summarizer_always_works() -> None:
    await ExtractiveSummarizer().probe()
