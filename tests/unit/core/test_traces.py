from __future__ import annotations

import pytest

from compaction.core import traces

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"  # the examples of the W3C recommendation
GIVEN = f"00-{TRACE}-00f067aa0ba902b7-01"


def test_a_trace_context_is_kept_and_names_its_trace() -> None:
    assert traces.traceparent(GIVEN) == GIVEN
    assert traces.trace_id(GIVEN) == TRACE


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "",
        "x",
        GIVEN.upper(),
        GIVEN + "\n",
        GIVEN + "-more",
        f"ff-{TRACE}-00f067aa0ba902b7-01",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-00f067aa0ba902b7-01",
    ],
)
def test_what_is_no_trace_context_is_passed_over(broken: str | None) -> None:
    assert traces.traceparent(broken) is None
    assert traces.trace_id(broken) is None
