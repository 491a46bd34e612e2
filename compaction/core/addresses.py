"""Which addresses we call for our users: public ones, and of the operator's own network what the operator allows.

A tenant chooses where a hook goes, and we stand inside the operator's network. So an address is judged by what it is,
not by how it is written: IPv4 inside IPv6 counts as the IPv4 address that it leads to.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

WEB_PORTS = frozenset({80, 443})  # the ports of http and https; others lead to databases and mail servers as well
MAX_PORT = 65_535
MAX_DIGITS = 5  # of a port

NEVER = frozenset({"unspecified", "multicast", "broadcast"})  # no host: 0.0.0.0 would even reach this very machine
INNER = frozenset({"loopback", "private"})  # what `true` allows; all other kinds have to be listed as networks

# The first match counts. Platform: cloud providers tell a machine's secrets there. The registries are IANA's
# special-purpose address registries for IPv4 and IPv6; networks in them that are dead or not routed are "reserved".
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("platform", ("169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32")),
    ("platform", ("fd00:ec2::254/128", "fd20:ce::254/128")),
    ("broadcast", ("255.255.255.255/32",)),
    ("unspecified", ("0.0.0.0/8", "::/128")),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("link-local", ("169.254.0.0/16", "fe80::/10")),
    ("private", ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")),
    ("reserved", ("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24")),
    ("reserved", ("203.0.113.0/24", "240.0.0.0/4")),
    ("reserved", ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")),
)
_TABLE = tuple((kind, tuple(map(ipaddress.ip_network, networks))) for kind, networks in _KINDS)
_NO_PORTS = "must be port numbers such as 80,443 or the word any"
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")  # all that is routed of IPv6 (RFC 4291)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how IPv6-only networks write IPv4 addresses (RFC 6052)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the operator allows beyond public addresses: the inner ones altogether, or networks by name."""

    inner: bool = False
    networks: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Where calls may go. `ports` is None when any port will do."""

    allowance: Allowance = Allowance()
    ports: frozenset[int] | None = WEB_PORTS


def refusal(text: str, allowance: Allowance) -> str | None:
    """Why the address may not be called: what kind of address it is; None when it may be."""
    try:
        written = ipaddress.ip_address(text)
    except ValueError:
        return "not an IP address"
    address = _meant(written)
    kind = "link-local" if getattr(written, "scope_id", None) else _kind(address)
    if kind is None or (kind not in NEVER and any(address in network for network in allowance.networks)):
        return None
    return None if allowance.inner and kind in INNER else kind


def is_address(text: str) -> bool:
    """Whether `text` is an IP address in its usual form (others, like 0x7f.1, are names to be resolved)."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def parse_allowance(value: object) -> Allowance:
    """The allowance in a setting: true, false, networks such as 10.0.0.0/8, or several by commas. Raises ValueError."""
    words = [word.strip().lower() for word in str(value).split(",")]
    try:
        networks = tuple(ipaddress.ip_network(word) for word in words if word not in {"", "true", "false"})
    except ValueError:
        raise ValueError("must be true, false, or networks such as 10.0.0.0/8 with commas between") from None
    return Allowance("true" in words, networks)


def parse_ports(value: object) -> frozenset[int] | None:
    """The ports in a setting: numbers with commas between, or `any` (None). Raises ValueError."""
    if str(value).strip().lower() == "any":
        return None
    words = [word.strip() for word in str(value).split(",")]
    if not all(word.isascii() and word.isdecimal() and len(word) <= MAX_DIGITS for word in words):
        raise ValueError(_NO_PORTS)
    ports = frozenset(map(int, words))
    if not all(0 < port <= MAX_PORT for port in ports):
        raise ValueError(_NO_PORTS)
    return ports


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, else the address itself."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF) if address in _NAT64 else address


def _kind(address: Address) -> str | None:
    for kind, networks in _TABLE:
        if any(address in network for network in networks):
            return kind
    return None if address.version == 4 or address in _GLOBAL_V6 else "reserved"  # noqa: PLR2004 - IP's own number
