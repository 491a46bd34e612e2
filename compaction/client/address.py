"""Whether an address and a key can be those of an API, before anything is sent: what is malformed is told in words."""

from __future__ import annotations

import httpx2

from compaction.client.errors import BadAddress

MAX_PORT = 65_535
_SCHEMES = frozenset({"http", "https"})
_NO_HOST = frozenset("%[] ")  # no host has them; the URL's reader quotes what it cannot read
_EXAMPLE = "write it as http://127.0.0.1:8080."


def check_url(url: str) -> None:
    """Raises BadAddress unless `url` is an http or https address with a host."""
    if not (url.isprintable() and url == url.strip()):
        raise BadAddress("url", "has a line break, a blank or a control character in it; " + _EXAMPLE)
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise BadAddress("url", "is no address: its host or its port cannot be one; " + _EXAMPLE) from None
    if parsed.scheme not in _SCHEMES:
        raise BadAddress("url", "must begin with http:// or https://; " + _EXAMPLE)
    if not parsed.host or not _NO_HOST.isdisjoint(parsed.host):
        raise BadAddress("url", "names no host; " + _EXAMPLE)
    if parsed.port is not None and not 0 < parsed.port <= MAX_PORT:
        raise BadAddress("url", f"has a port that is not from 1 to {MAX_PORT}; " + _EXAMPLE)
    if parsed.query or parsed.fragment:
        raise BadAddress("url", "must end with the host, the port or a path, without ? and #; " + _EXAMPLE)


def check_api_key(api_key: str) -> None:
    """Raises BadAddress unless `api_key` can stand in a header."""
    if not api_key:
        raise BadAddress("api_key", "is empty; a key looks like ck_…")
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise BadAddress("api_key", "has a line break, a blank or another character in it that no key has (ck_…)")
