from __future__ import annotations

import pytest

from compaction.core.jsonbytes import Json
from compaction.formats.branch import Branch, Thread, active_branch, thread_of
from compaction.formats.content import ContentFacts
from compaction.formats.rows import COMPACT, MICROCOMPACT, Row

TEXT = ContentFacts()


def row(kind: str, uuid: str, parent: str | None, **fields: Json) -> Row:
    told: dict[str, Json] = {"content": TEXT} | fields
    return Row(line=0, offset=0, length=0, kind=kind, uuid=uuid, parent_uuid=parent, **told)


def user(uuid: str, parent: str | None, **fields: Json) -> Row:
    return row("user", uuid, parent, **fields)


def assistant(uuid: str, parent: str | None, message_id: str | None = None, **fields: Json) -> Row:
    return row("assistant", uuid, parent, message_id=message_id or f"m-{uuid}", **fields)


def result(uuid: str, parent: str | None, **fields: Json) -> Row:
    return user(uuid, parent, content=ContentFacts(tool_results=("c",)), **fields)


def branch(*rows: Row, thread: Thread = "main") -> Branch:
    return active_branch(rows, thread)


def names(found: Branch) -> list[str]:
    return [one.uuid for one in found.rows]


def test_a_rewound_turn_is_not_on_the_branch() -> None:
    found = branch(
        user("q1", None),
        assistant("a1", "q1"),
        user("q2", "a1"),
        assistant("a2", "q2"),
        user("q3", "a1"),
        assistant("a3", "q3"),
    )
    assert names(found) == ["q1", "a1", "q3", "a3"]
    assert found.off_branch_rows == 2
    assert not found.starts_mid_chain


def test_the_chain_runs_through_rows_that_are_no_messages() -> None:
    found = branch(user("q", None), row("progress", "p", "q"), row("system", "s", "p"), assistant("a", "s"))
    assert names(found) == ["q", "a"]


def test_parallel_calls_and_their_results_beside_the_path_belong_to_it() -> None:
    found = branch(
        user("q", None),
        assistant("a1", "q", "m"),
        result("r1", "a1"),
        assistant("a2", "a1", "m"),
        result("r2", "a2"),
        assistant("a3", "r2"),
    )
    assert names(found) == ["q", "a1", "r1", "a2", "r2", "a3"]
    assert found.off_branch_rows == 0


def test_a_result_names_its_call_by_source_before_its_parent() -> None:
    found = branch(
        user("q", None),
        assistant("a1", "q", "m"),
        row("progress", "p", "a1"),
        result("r1", "p", source_uuid="a1"),
        result("r2", "a1", source_uuid="elsewhere"),
        assistant("a2", "a1", "m"),
    )
    assert names(found) == ["q", "a1", "r1", "a2"]


def test_over_a_boundary_the_chain_goes_on_at_the_logical_parent() -> None:
    found = branch(
        user("q1", None),
        assistant("a1", "q1"),
        user("dropped", "a1"),
        row(COMPACT, "b", None, logical_parent_uuid="a1"),
        user("sum", "b"),
        assistant("a2", "sum"),
    )
    assert names(found) == ["q1", "a1", "b", "sum", "a2"]
    assert [one.uuid for one in found.window] == ["sum", "a2"]


def test_without_a_boundary_the_window_is_everything() -> None:
    found = branch(user("q", None), assistant("a", "q"))
    assert found.window == found.rows


def test_a_micro_compaction_is_a_marker_that_starts_no_window() -> None:
    found = branch(user("q", None), assistant("a", "q"), row(MICROCOMPACT, "m", "a"), user("q2", "m"))
    assert names(found) == ["q", "a", "m", "q2"]
    assert len(found.window) == 4


def test_a_boundary_that_was_rewound_over_is_not_on_the_branch() -> None:
    found = branch(
        user("q1", None),
        assistant("a1", "q1"),
        row(COMPACT, "b", None, logical_parent_uuid="a1"),
        user("sum", "b"),
        user("q2", "a1"),
    )
    assert names(found) == ["q1", "a1", "q2"]


@pytest.mark.parametrize("parent", ["gone", "side"])
def test_a_gap_is_bridged_by_the_threads_row_before_it(parent: str) -> None:
    found = branch(
        user("q1", None),
        assistant("a1", "q1"),
        user("side", None, is_sidechain=True),
        user("q2", parent),
        assistant("a2", "q2"),
    )
    assert names(found) == ["q1", "a1", "q2", "a2"]


def test_a_parent_that_is_not_in_the_file_is_told_only_where_the_branch_meets_it() -> None:
    assert branch(user("q", "gone"), assistant("a", "q")).starts_mid_chain
    beside = branch(user("q0", "gone"), user("q1", None), assistant("a", "q1"))
    assert not beside.starts_mid_chain
    assert names(beside) == ["q1", "a"]


def test_rows_that_name_no_parent_follow_the_row_before_them() -> None:
    found = branch(
        user("q1", None, unlinked=True), assistant("a1", None, unlinked=True), user("q2", None, unlinked=True)
    )
    assert names(found) == ["q1", "a1", "q2"]
    assert not found.starts_mid_chain


def test_a_circle_of_parents_ends_and_loses_nothing_before_it() -> None:
    found = branch(user("q1", None), assistant("a1", "q1"), user("q2", "q3"), assistant("a2", "q2"), user("q3", "a2"))
    assert names(found) == ["q1", "a1", "q2", "a2", "q3"]


def test_a_sub_agents_file_has_its_own_thread() -> None:
    rows = [user("q", None, is_sidechain=True), assistant("a", "q", is_sidechain=True)]
    assert thread_of(rows) == "subagent"
    assert names(branch(*rows, thread="subagent")) == ["q", "a"]


def test_sidechain_rows_stay_out_of_the_main_thread_even_as_the_last_ones() -> None:
    rows = [
        user("q", None),
        assistant("a", "q"),
        user("s", "a", is_sidechain=True),
        assistant("t", "s", is_sidechain=True),
    ]
    assert thread_of(rows) == "main"
    found = branch(*rows)
    assert names(found) == ["q", "a"]
    assert found.off_branch_rows == 0


def test_a_file_without_messages_is_nobodys() -> None:
    assert thread_of([row("progress", "p", None, content=None)]) == "none"
    assert names(branch(row("progress", "p", None, content=None), thread="none")) == []


def test_broken_links_that_point_back_up_the_file_again_and_again_lose_nothing() -> None:
    """Each low row names a high one, whose parent is gone: the way down crosses all that was seen."""
    count = 1_000
    low = [user(f"low{index}", f"high{count - 1 - index}") for index in range(count)]
    high = [user(f"{kind}{index}", None) for index in range(count) for kind in ("seen", "high")]
    linked = {f"seen{index}": f"seen{index - 1}" for index in range(1, count)} | {"seen0": f"low{count - 1}"}
    rows = [*low, *(user(one.uuid, linked.get(one.uuid, "gone")) for one in high), user("last", f"seen{count - 1}")]
    assert names(branch(*rows)) == [one.uuid for one in rows]
