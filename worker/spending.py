"""What a job's model calls cost: of one attempt by its events, of all earlier attempts by their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from compaction.core.jsonbytes import Json
from compaction.core.messages import Usage, usage_from
from compaction.core.results import Spent

CALL = "model_call"  # the event of an answered call


def of_attempt(events: Sequence[tuple[str, Mapping[str, Json]]]) -> dict[str, Json] | None:
    """The attempt's record: tokens by their API names and `cost_usd`; None when no call was answered."""
    calls = [fields for name, fields in events if name == CALL]
    if not calls:
        return None
    spent = _sum((call.get("usage"), call.get("cost_usd")) for call in calls)
    return {**spent.usage.to_dict(), "cost_usd": None if spent.dollars is None else str(spent.dollars)}


def of_earlier(records: Iterable[Mapping[str, Json]]) -> Spent:
    """The sum over the records of earlier attempts. An attempt that died with its worker left none."""
    return _sum((record, record.get("cost_usd")) for record in records)


def _sum(calls: Iterable[tuple[Json, Json]]) -> Spent:
    usage, dollars = Usage(), Decimal(0)
    known = True
    for tokens, cost in calls:
        usage = usage.plus(usage_from(tokens) or Usage())
        known = known and isinstance(cost, str)
        dollars += Decimal(cost) if isinstance(cost, str) else Decimal(0)
    return Spent(usage, dollars if known else None)
