from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.addresses import (
    AddressRules,
    Allowance,
    is_address,
    parse_allowance,
    parse_ports,
    refusal,
)

NOTHING = Allowance()
INNER = Allowance(inner=True)

REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "::1": "loopback",
    "::ffff:127.0.0.1": "loopback",  # IPv4 inside IPv6
    "64:ff9b::7f00:1": "loopback",  # the same behind NAT64
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "100.64.0.1": "private",  # carriers' own network
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fec0::1": "private",
    "::ffff:10.0.0.1": "private",
    "169.254.0.1": "link-local",
    "fe80::1": "link-local",
    "fe80::1%2": "link-local",
    "2606:4700::1%2": "link-local",  # a scope belongs to an interface of this machine
    "169.254.169.254": "platform",  # where clouds tell a machine its secrets
    "::ffff:169.254.169.254": "platform",
    "168.63.129.16": "platform",
    "100.100.100.200": "platform",
    "fd00:ec2::254": "platform",
    "fd20:ce::254": "platform",
    "0.0.0.0": "unspecified",  # noqa: S104 - an address under test
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "ff02::1": "multicast",
    "255.255.255.255": "broadcast",
    "240.0.0.1": "reserved",
    "192.0.0.8": "reserved",
    "192.0.2.1": "reserved",
    "198.18.0.1": "reserved",
    "198.51.100.1": "reserved",
    "203.0.113.1": "reserved",
    "2001:db8::1": "reserved",
    "3fff::1": "reserved",
    "2002:7f00:1::": "reserved",  # 6to4 of 127.0.0.1
    "2001::7f00:1": "reserved",  # Teredo
    "::7f00:1": "reserved",  # the first, dead way to write IPv4 in IPv6
    "64:ff9b:1::7f00:1": "reserved",
    "5f00::1": "reserved",
    "example.com": "not an IP address",
    "0x7f.1": "not an IP address",
    "127.0.0.1:80": "not an IP address",
    "": "not an IP address",
}


@pytest.mark.parametrize(("address", "kind"), REFUSED.items())
def test_an_address_that_is_not_public_is_refused_by_its_kind(address: str, kind: str) -> None:
    assert refusal(address, NOTHING) == kind


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "223.255.255.255"),
        *("2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"),
    ],
)
def test_a_public_address_may_be_called(address: str) -> None:
    assert refusal(address, NOTHING) is None


@pytest.mark.parametrize(("address", "kind"), REFUSED.items())
def test_allowing_inner_addresses_opens_loopback_and_private_networks_alone(address: str, kind: str) -> None:
    assert refusal(address, INNER) == (None if kind in {"loopback", "private"} else kind)


def test_a_listed_network_is_open_and_no_other() -> None:
    allowance = Allowance(networks=(ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/8")))
    assert refusal("10.1.2.3", allowance) is None
    assert refusal("::ffff:10.1.2.3", allowance) is None
    assert refusal("fd00::5", allowance) is None
    assert refusal("10.2.0.1", allowance) == "private"


def test_what_is_not_inner_can_be_opened_by_listing_it() -> None:
    assert refusal("169.254.169.254", Allowance(networks=(ipaddress.ip_network("169.254.169.254/32"),))) is None


@pytest.mark.parametrize("address", ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1"])  # noqa: S104 - the same
def test_what_is_no_host_stays_closed_whatever_is_listed(address: str) -> None:
    everything = Allowance(inner=True, networks=(ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")))
    assert refusal(address, everything) is not None


@settings(deadline=None)
@given(st.ip_addresses())
def test_what_python_calls_not_global_is_never_open(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if not address.is_global and getattr(address, "ipv4_mapped", None) is None:
        assert refusal(str(address), NOTHING) is not None


@settings(deadline=None)
@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_however_it_is_wrapped(address: ipaddress.IPv4Address) -> None:
    plain = refusal(str(address), NOTHING)
    assert refusal(f"::ffff:{address}", NOTHING) == plain
    assert refusal(f"64:ff9b::{address}", NOTHING) == plain


def test_an_address_is_told_from_a_name() -> None:
    assert is_address("127.0.0.1")
    assert is_address("::1")
    assert not is_address("0x7f000001")
    assert not is_address("localhost")


@pytest.mark.parametrize(
    ("text", "allowance"),
    [
        ("", NOTHING),
        ("false", NOTHING),
        ("true", INNER),
        (" True ", INNER),
        ("10.0.0.0/8", Allowance(networks=(ipaddress.ip_network("10.0.0.0/8"),))),
        ("10.0.0.5", Allowance(networks=(ipaddress.ip_network("10.0.0.5/32"),))),
        (
            "true, 169.254.0.0/16 ,fd00::/8",
            Allowance(inner=True, networks=(ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fd00::/8"))),
        ),
    ],
)
def test_the_allowance_is_read_from_a_setting(text: str, allowance: Allowance) -> None:
    assert parse_allowance(text) == allowance


@pytest.mark.parametrize("text", ["yes", "10.0.0.1/8", "10.0.0.0/33", "example.com", "true;false"])
def test_a_wrong_allowance_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="must be true, false, or networks") as caught:
        parse_allowance(text)
    assert text not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "ports"),
    [("80,443", {80, 443}), (" 8443 ", {8443}), ("1,65535", {1, 65_535}), ("any", None), ("Any", None)],
)
def test_ports_are_read_from_a_setting(text: str, ports: set[int] | None) -> None:
    assert parse_ports(text) == ports


@pytest.mark.parametrize("text", ["", "80,", "0", "65536", "-1", "http", "80;443", "٨٠", "1" * 5_000])
def test_wrong_ports_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be port numbers"):
        parse_ports(text)


def test_without_settings_only_public_addresses_and_the_ports_of_the_web_are_open() -> None:
    assert AddressRules() == AddressRules(Allowance(inner=False, networks=()), frozenset({80, 443}))
