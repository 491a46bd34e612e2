from __future__ import annotations

import gc

from compaction.hooks.shares import Shares


class Thing:
    """Something that a tenant has."""


def test_a_tenant_has_one_thing_and_another_tenant_another() -> None:
    shares = Shares(Thing)
    mine = shares.of("a")
    assert shares.of("a") is mine
    assert shares.of("b") is not mine


def test_a_thing_that_nobody_uses_is_let_go() -> None:
    shares = Shares(Thing)
    shares.of("a")
    gc.collect()
    assert len(shares._held) == 0
