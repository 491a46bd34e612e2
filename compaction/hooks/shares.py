"""One thing per tenant, so that a tenant whose hooks are slow waits for them alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Shares(Generic[T]):
    """Makes a tenant's thing when it is first asked for, and lets go of it when nobody uses it any more."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._held: WeakValueDictionary[str, T] = WeakValueDictionary()

    def of(self, tenant: str) -> T:
        """The tenant's own."""
        held = self._held.get(tenant)
        if held is None:
            held = self._held[tenant] = self._make()
        return held
