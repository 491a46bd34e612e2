from __future__ import annotations

import ipaddress

import pytest

from compaction.core.addresses import WEB_PORTS, AddressRules, Allowance
from compaction.settings import SettingsError, settings_from

MUST = {"COMPACTD_DATABASE_URL": "postgresql+psycopg://x", "COMPACTD_REDIS_URL": "redis://x"}


def test_hooks_reach_public_web_addresses_unless_the_operator_says_more() -> None:
    assert settings_from(MUST).hook_rules == AddressRules(Allowance(), WEB_PORTS)
    assert settings_from(MUST).hook_plugin_seconds == 5


def test_the_operator_can_open_networks_and_ports() -> None:
    given = {"COMPACTD_HOOK_ALLOW_PRIVATE": "true,169.254.7.0/24", "COMPACTD_HOOK_PORTS": "443,8443"}
    networks = (ipaddress.ip_network("169.254.7.0/24"),)
    assert settings_from(MUST | given).hook_rules == AddressRules(
        Allowance(inner=True, networks=networks), frozenset({443, 8443})
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMPACTD_HOOK_ALLOW_PRIVATE", "10.0.0.1/8"),
        ("COMPACTD_HOOK_PORTS", "web"),
        ("COMPACTD_HOOK_PLUGIN_SECONDS", "31"),
        ("COMPACTD_HOOK_PLUGIN_SECONDS", "0"),
    ],
)
def test_a_wrong_value_stops_the_start_by_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        settings_from(MUST | {name: value})
