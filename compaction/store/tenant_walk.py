"""Walks over tenants: which of them have rows of a kind, by one probe of an index for each, however many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import CTE, BigInteger, ColumnElement, FromClause, Select, bindparam, literal_column, select

_ONE: ColumnElement[Any] = literal_column("1")


def tenants_with(table: FromClause, wanted: Callable[[FromClause], ColumnElement[bool]]) -> CTE:
    """The tenants (column id) of `table` that have wanted rows, from behind `b_after_tenant_id` on; NULL is last.

    `wanted` gives the condition in the words of the partial index that begins with the tenant.
    """
    first = _next(table, wanted, bindparam("b_after_tenant_id", type_=BigInteger))
    tenant = select(first.scalar_subquery().label("id")).cte("tenant", recursive=True)
    following = _next(table.alias("another"), wanted, tenant.c.id).correlate(tenant)
    return tenant.union_all(select(following.scalar_subquery()).where(tenant.c.id.is_not(None)))


def _next(
    table: FromClause, wanted: Callable[[FromClause], ColumnElement[bool]], after_id: ColumnElement[Any]
) -> Select[Any]:
    later = select(table.c.tenant_id).where(wanted(table), table.c.tenant_id > after_id)
    return later.order_by(table.c.tenant_id).limit(_ONE)
