"""What the doctor looks at, part by part, and what to do about each thing that it finds wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.client import Client, Readiness, Refused, Unreachable

MAX_SKEW_SECONDS = 60.0  # receivers of webhooks refuse what is five minutes off; a healthy clock is within a second

_NAMES = {  # of the parts of GET /readyz, in the order of what stands on what
    "database": "database",
    "migrations": "migrations",
    "redis": "broker",
    "workers": "workers",
    "providers": "provider",
    "clock": "server's clock",
}
_ADVICE = {
    "database": "Start Postgres, or mend COMPACTD_DATABASE_URL of the API. `make up` runs a whole stack.",
    "migrations": "Run `alembic upgrade head` with COMPACTD_DATABASE_URL set, from the version that the API runs.",
    "redis": "Start Redis or Valkey, or mend COMPACTD_REDIS_URL. Jobs are accepted and run meanwhile, only later.",
    "workers": "Start one: `python -m worker`. Jobs are accepted meanwhile and wait.",
    "clock": "Set the clocks of API and database by NTP.",
}
_PROVIDER_ADVICE = {
    "auth_error": "Give the workers a valid ANTHROPIC_API_KEY and start them anew; it is tried again by itself.",
    "billing_error": "Fill the provider's account up; it is tried again by itself.",
}
_OUTAGE = "The model's API fails for everybody. It is tried again by itself; nothing to do but wait."
_UNASKED = "could not be asked without the database"


@dataclass(frozen=True, slots=True)
class Finding:
    """One part: whether it is well, in words, and what to do when it is not."""

    name: str
    ok: bool
    detail: str
    advice: str | None = None


async def examine(client: Client) -> list[Finding]:
    """Everything, the API first; without it there is nothing else to look at."""
    try:
        ahead_seconds = await client.clock_ahead_seconds()
        readiness = await client.readiness()
    except Unreachable as error:
        return [Finding("API", ok=False, detail=str(error), advice=_no_api())]
    except (Refused, ValueError, KeyError):
        return [Finding("API", ok=False, detail="something else answers at this address", advice=_no_api())]
    findings = [Finding("API", ok=True, detail="answers"), await _key(client), *_parts(readiness)]
    return [*findings, _clock(ahead_seconds)]


def _no_api() -> str:
    return "Start a stack with `make up`, or set COMPACTD_URL to the address of one."


async def _key(client: Client) -> Finding:
    try:
        await client.jobs(limit=1)
    except Refused as error:
        if error.code == "unauthorized":
            advice = "Set COMPACTD_API_KEY to a valid key (ck_…), or unset it for the local stack."
            return Finding("key", ok=False, detail="is not taken: wrong, expired or revoked", advice=advice)
        if error.code == "forbidden":
            return Finding("key", ok=False, detail="lacks the scope read", advice="Ask an admin for a key that has it.")
        return Finding("key", ok=False, detail=f"could not be checked: {error.detail}", advice="See below.")
    except Unreachable as error:
        return Finding("key", ok=False, detail=f"could not be checked: {error}", advice="See below.")
    return Finding("key", ok=True, detail="is taken")


def _parts(readiness: Readiness) -> Iterator[Finding]:
    for part, name in _NAMES.items():
        found = readiness["parts"].get(part)
        if found is None:
            yield Finding(name, ok=False, detail=_UNASKED, advice="See the database.")
        else:
            detail = found["detail"]
            yield Finding(name, found["ok"], detail, None if found["ok"] else _advice(part, detail))


def _advice(part: str, detail: str) -> str:
    if part == "providers":
        return next((words for code, words in _PROVIDER_ADVICE.items() if code in detail), _OUTAGE)
    return _ADVICE[part]


def _clock(ahead_seconds: float) -> Finding:
    if abs(ahead_seconds) <= MAX_SKEW_SECONDS:
        return Finding("this clock", ok=True, detail="agrees with the server's")
    direction = "ahead of" if ahead_seconds > 0 else "behind"
    detail = f"is {abs(ahead_seconds):.0f} s {direction} the server's"
    return Finding("this clock", ok=False, detail=detail, advice="Set it by NTP: signed webhooks would not be taken.")
