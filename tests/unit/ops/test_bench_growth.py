"""What the growth bench adds up."""

from __future__ import annotations

from ops.bench.growth import OF_SESSIONS, Sizes


def test_only_what_was_added_counts_also_in_a_table_that_was_not_there() -> None:
    grown = Sizes({"messages": 900, "jobs": 50, "attempts": 8}, 1_000).since(Sizes({"messages": 100, "jobs": 50}, 400))

    assert grown == Sizes({"messages": 800, "jobs": 0, "attempts": 8}, 600)


def test_what_stays_with_a_session_is_not_a_jobs() -> None:
    assert "messages" in OF_SESSIONS
    assert "results" not in OF_SESSIONS
