"""Session state in whatever shape producers store it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.session_state import MAX_ENTRIES, MAX_PROBLEMS, Declaration, Note, SessionState, state_from
from tests.unit.core.strategies import values

KINDS = ["files", "plans", "plan_mode", "skills", "memory", "claude_md", "tools", "agents", "mcp_instructions"]


@pytest.mark.parametrize("kind", ["files", "plans", "skills", "memory", "claude_md", "mcp_instructions"])
@pytest.mark.parametrize(
    "value",
    ["Word for word.", {"content": "Word for word."}, {"text": "Word for word."}, [{"content": "Word for word."}]],
)
def test_a_text_is_found_in_every_usual_shape(kind: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    assert getattr(state_from([(kind, "key", value)]), kind) == (Note("key", "Word for word."),)


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        ("files", {"path": "src/a.py", "content": "x = 1"}, "src/a.py"),
        ("files", {"file_path": "src/a.py", "content": "x = 1"}, "src/a.py"),
        ("skills", {"name": "release", "content": "Tag it."}, "release"),
        ("mcp_instructions", {"server": "db", "instructions": "Read only."}, "db"),
        ("plans", {"title": "Move it", "plan": "1. Look."}, "Move it"),
        ("plans", {"title": " ", "plan": "1. Look."}, "key"),
    ],
)
def test_a_name_in_the_entry_wins_over_its_key(kind: str, value: Any, name: str) -> None:  # noqa: ANN401 - any JSON
    (note,) = getattr(state_from([(kind, "key", value)]), kind)
    assert note.name == name


@pytest.mark.parametrize(("kind", "field"), [("files", "read_at"), ("skills", "used_at")])
def test_files_and_skills_come_newest_first(kind: str, field: str) -> None:
    times = {"a": "2026-11-30T10:00:00Z", "b": None, "c": "2026-11-30T13:00:00+01:00", "d": "soon", "e": "2026-12-01"}
    found = getattr(state_from([(kind, key, {"content": key, field: at}) for key, at in times.items()]), kind)
    assert [note.name for note in found] == ["e", "c", "a", "b", "d"]
    assert found[2].at == datetime(2026, 11, 30, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "on"),
    [
        (True, True),
        (False, False),
        ({"active": True}, True),
        ({"enabled": False}, False),
        ({"plan_file": "plan.md"}, True),
        ("on", True),
        (" Plan ", True),
        ("off", False),
    ],
)
def test_plan_mode_is_a_switch(value: Any, on: bool) -> None:  # noqa: ANN401 - any JSON
    state = state_from([("plan_mode", "plan_mode", value)])
    assert (state.plan_mode, state.problems) == (on, ())


def test_skills_that_were_not_used_are_left_out_without_a_word() -> None:
    state = state_from(
        [("skills", "a", {"content": "A", "used": False}), ("skills", "b", {"content": "B", "used": True})]
    )
    assert [note.name for note in state.skills] == ["b"]
    assert state.problems == ()


def test_tools_are_names_with_a_purpose() -> None:
    state = state_from(
        [
            ("tools", "deploy", "Brings a build out."),
            ("tools", "all", [{"name": "rows", "description": "Reads rows.", "input_schema": {}}, {"name": "bare"}]),
        ]
    )
    assert state.tools == (
        Declaration("deploy", "Brings a build out."),
        Declaration("rows", "Reads rows."),
        Declaration("bare"),
    )


def test_an_agent_keeps_everything_that_is_known_of_it() -> None:
    entry = {
        "type": "agent",
        "id": "agent-7f31",
        "name": "Loader",
        "status": "running",
        "task": "load test",
        "turns": 3,
    }
    state = state_from([("agents", "x", entry), ("agents", "y", "Reviews."), ("agents", "z", {"status": "done"})])
    assert state.agents == (
        Declaration("agent-7f31 Loader", 'load test {"turns":3}', "running"),
        Declaration("y", "Reviews."),
        Declaration("z", "", "done"),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [None, 7, {}, {"path": "a"}, ["", 7], [[]]])
def test_what_cannot_be_read_is_noted_without_its_content(kind: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    state = state_from([(kind, "private/key", value), ("files", "a.py", "x = 1")])
    assert "a.py" in [note.name for note in state.files]
    assert all("private" not in problem and kind in problem for problem in state.problems)


def test_problems_are_counted_up_to_a_limit() -> None:
    assert len(state_from([("files", str(number), 7) for number in range(99)]).problems) == MAX_PROBLEMS


def test_entries_are_counted_up_to_a_limit() -> None:
    state = state_from([("plans", "all", ["Plan."] * (MAX_ENTRIES + 1))])
    assert len(state.plans) == MAX_ENTRIES
    assert len(state.problems) == 1


def test_kinds_that_are_not_ours_are_passed_over() -> None:
    assert state_from([("runtime", "file_state", {"content": "x"}), ("mood", "k", 7)]) == SessionState()


def test_the_memory_document_is_the_sessions_own_where_there_is_one() -> None:
    entries = [("memory", "notes/a.md", "A"), ("memory", "session", {"content": "S"}), ("memory", "b", "B")]
    assert state_from(entries).memory_document == "S"
    assert state_from([entries[0], entries[2]]).memory_document == "A\n\nB"
    assert SessionState().memory_document == ""


def test_private_text_stays_out_of_every_repr() -> None:
    state = state_from(
        [("files", "a", "SECRET"), ("agents", "x", {"id": "x", "task": "SECRET"}), ("memory", "m", "SECRET")]
    )
    assert "SECRET" not in repr(state)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.text(max_size=5), values), max_size=5))
def test_no_entry_is_ever_fatal(entries: list[tuple[str, str, Any]]) -> None:
    state_from(entries)
