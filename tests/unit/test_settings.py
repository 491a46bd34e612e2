"""Settings: wrong ones are named at the start, secret ones are shown nowhere."""

from __future__ import annotations

import pytest

from compaction.settings import SettingsError, settings_from

MUST = {"COMPACTD_DATABASE_URL": "postgresql+psycopg://x", "COMPACTD_REDIS_URL": "redis://x"}
SECRETS = {
    "COMPACTD_DATABASE_URL": "postgresql+psycopg://compactd:hunter2@host/name",
    "COMPACTD_REDIS_URL": "redis://:hunter2@host/0",
    "COMPACTD_BOOTSTRAP_API_KEY": "ck_hunter2x_" + "a" * 43,
    "COMPACTD_KEY_PEPPER": "hunter2",
    "ANTHROPIC_API_KEY": "hunter2",
    "ANTHROPIC_AUTH_TOKEN": "hunter2",
    "ANTHROPIC_BASE_URL": "https://user:hunter2@gateway.example.com",
}


def test_no_secret_stands_in_the_text_of_the_settings() -> None:
    settings = settings_from(SECRETS)

    assert "hunter2" not in repr(settings) + str(settings)
    assert settings.key_pepper == "hunter2"


def test_no_secret_stands_in_the_words_about_wrong_settings() -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(SECRETS | {"COMPACTD_PORT": "hunter2", "COMPACTD_LOG_LEVEL": "hunter2"})

    assert "COMPACTD_PORT" in caught.value.message
    assert "COMPACTD_LOG_LEVEL" in caught.value.message
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(("lease", "heartbeat"), [("29.9", "10"), ("4", "1.4"), ("10", ""), ("", "20.1")])
def test_a_lease_too_short_for_three_heartbeats_is_refused_by_both_names(lease: str, heartbeat: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(MUST | {"COMPACTD_LEASE_SECONDS": lease, "COMPACTD_HEARTBEAT_SECONDS": heartbeat})

    assert "COMPACTD_LEASE_SECONDS" in caught.value.message
    assert "COMPACTD_HEARTBEAT_SECONDS" in caught.value.message


@pytest.mark.parametrize(("lease", "heartbeat"), [("30", "10"), ("4", "1"), ("60", "10"), ("", "")])
def test_a_lease_of_three_heartbeats_or_more_is_taken(lease: str, heartbeat: str) -> None:
    settings = settings_from(MUST | {"COMPACTD_LEASE_SECONDS": lease, "COMPACTD_HEARTBEAT_SECONDS": heartbeat})

    assert settings.lease_seconds >= 3 * settings.heartbeat_seconds
