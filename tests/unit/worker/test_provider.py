"""Under which name a credential is known."""

from __future__ import annotations

from compaction.settings import Settings, settings_from
from worker.provider import provider_name


def settings(**environ: str) -> Settings:
    return settings_from({"COMPACTD_DATABASE_URL": "postgresql://x", "COMPACTD_REDIS_URL": "redis://x", **environ})


def test_each_credential_and_address_has_a_name_of_its_own_that_tells_nothing() -> None:
    names = [
        provider_name(settings(ANTHROPIC_API_KEY="sk-first")),
        provider_name(settings(ANTHROPIC_API_KEY="sk-second")),
        provider_name(settings(ANTHROPIC_AUTH_TOKEN="a-token")),
        provider_name(settings(ANTHROPIC_API_KEY="sk-first", ANTHROPIC_BASE_URL="http://gateway")),
    ]
    assert len(set(names)) == 4
    for name in names:
        assert name is not None
        assert name.startswith("claude-")
        assert len(name) == len("claude-") + 12
        assert "first" not in name


def test_the_same_credential_has_the_same_name_in_every_process() -> None:
    one, other = (provider_name(settings(ANTHROPIC_API_KEY="sk-first")) for _ in range(2))
    assert one == other


def test_a_worker_that_calls_no_model_has_no_provider() -> None:
    assert provider_name(settings()) is None
    assert provider_name(settings(COMPACTD_SUMMARIZER="extractive", ANTHROPIC_API_KEY="sk-first")) is None
