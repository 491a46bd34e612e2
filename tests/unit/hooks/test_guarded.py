from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

import pytest

from compaction.core.addresses import AddressRules, Allowance
from compaction.hooks.guarded import CallProblem, GuardedCaller, checked, resolved

pytestmark = pytest.mark.anyio

OPEN = AddressRules(Allowance(inner=True), None)


class Names:
    """Resolves every name to the same addresses, or fails; counts how often it is asked."""

    def __init__(self, *found: str, error: Exception | None = None) -> None:
        self.found = found
        self.error = error
        self.asked: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        if self.error is not None:
            raise self.error
        return self.found


async def refused(url: str, names: Names, rules: AddressRules = AddressRules()) -> str:  # noqa: B008 - it is frozen
    """What a call says that is not made."""
    with pytest.raises(CallProblem) as caught:
        await GuardedCaller(rules, resolve=names).post("t", url, b"{}", {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "must be a whole http or https URL"),
        ("hooks.example.com/x", "must be a whole http or https URL"),
        ("http://", "must be a whole http or https URL"),
        ("http://[::1", "must be a whole http or https URL"),
        ("https://example.com/" + "x" * 2_048, "of at most 2,048 characters"),
        ("https://exa\nmple.com/", "must be a whole http or https URL"),
        ("ftp://example.com/", "must begin with https:// or http://"),
        ("file://example.com/etc/passwd", "must begin with https:// or http://"),
        ("gopher://example.com/", "must begin with https:// or http://"),
        ("https://user:password@example.com/", "must not hold a user name or a password"),
        ("https://user@example.com/", "must not hold a user name or a password"),
        ("https://example.com:8443/", "port is not among those allowed here"),
        ("http://example.com:25/", "port is not among those allowed here"),
        ("http://127.0.0.1/", "not allowed here (loopback)"),
        ("http://[::1]/", "not allowed here (loopback)"),
        ("http://[::ffff:169.254.169.254]/latest/meta-data/", "not allowed here (platform)"),
        ("http://10.0.0.1/", "not allowed here (private)"),
        ("http://0177.0.0.1/", "must be a whole http or https URL"),
    ],
)
def test_an_address_that_no_call_would_go_to_is_refused_before_its_name_is_looked_up(url: str, words: str) -> None:
    with pytest.raises(CallProblem) as caught:
        checked(url, AddressRules())
    assert words in str(caught.value)
    assert "password@" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://example.com/hook?token=x", "http://example.com", "HTTPS://EXAMPLE.com:443/", "http://1.1.1.1/"]
)
def test_a_public_web_address_is_taken(url: str) -> None:
    assert checked(url, AddressRules()).host in {"example.com", "1.1.1.1"}


def test_what_the_operator_allows_is_taken() -> None:
    assert checked("http://127.0.0.1:9000/", OPEN).port == 9000


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (["127.0.0.1"], "loopback"),
        (["10.1.2.3", "::1"], "loopback, private"),
        (["169.254.169.254"], "platform"),
        (["::ffff:192.168.0.1"], "private"),
        (["fe80::1%eth0"], "link-local"),
        ([], "it has none"),
        (["not an address"], "not an IP address"),
    ],
)
async def test_a_name_that_leads_inside_is_not_called(found: list[str], kinds: str) -> None:
    names = Names(*found)
    assert await refused("https://inside.example.com/", names) == f"the host's address is not allowed here ({kinds})"
    assert names.asked == [("inside.example.com", 443)]


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1"])
async def test_other_ways_to_write_an_address_are_names_and_judged_by_what_they_lead_to(host: str) -> None:
    found = resolved(host, 80)
    assert set(found) == {"127.0.0.1"}
    assert "loopback" in await refused(f"http://{host}/", Names(*found))


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
async def test_a_name_that_cannot_be_resolved_is_told(error: Exception) -> None:
    assert await refused("https://nobody.example.com/", Names(error=error)) == "the host's name cannot be resolved"


def test_the_system_resolves_names() -> None:
    assert {"127.0.0.1", "::1"} & set(resolved("localhost", 80))


async def test_a_name_in_another_script_is_looked_up_in_its_ascii_form() -> None:
    names = Names("10.0.0.1")
    await refused("https://bücher.example/", names)
    assert names.asked == [("xn--bcher-kva.example", 443)]


async def test_a_network_that_is_not_listed_stays_closed() -> None:
    rules = AddressRules(Allowance(networks=(ipaddress.ip_network("10.0.0.0/8"),)), None)
    assert await refused("http://x.example.com:8080/", Names("192.168.0.1"), rules) == (
        "the host's address is not allowed here (private)"
    )
