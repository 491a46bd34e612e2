"""Which tools' results may be cleared."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core.tool_table import KINDS, MAX_SETTINGS, OTHER, ToolTable, tool_table

COMPACTABLE = ["Read", "Bash", "PowerShell", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"]  # DESIGN §3


def test_the_kinds_are_those_of_the_design() -> None:
    assert list(KINDS) == COMPACTABLE


@pytest.mark.parametrize("name", COMPACTABLE)
def test_each_of_them_is_clearable_under_its_own_name(name: str) -> None:
    assert ToolTable().kind(name) == name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("read_file", "Read"),
        ("ReadFile", "Read"),
        ("read-file", "Read"),
        ("bash", "Bash"),
        ("shell", "Bash"),
        ("run_shell_command", "Bash"),
        ("execute_bash", "Bash"),
        ("pwsh", "PowerShell"),
        ("search_files", "Grep"),
        ("list_files", "Glob"),
        ("google_web_search", "WebSearch"),
        ("web_fetch", "WebFetch"),
        ("str_replace_editor", "Edit"),
        ("str_replace_based_edit_tool", "Edit"),
        ("MultiEdit", "Edit"),
        ("write_to_file", "Write"),
    ],
)
def test_other_agents_names_are_known(name: str, kind: str) -> None:
    assert ToolTable().kind(name) == kind


@pytest.mark.parametrize(
    "name",
    ["AskUserQuestion", "Agent", "Task", "ask_user_question", "TodoWrite", "mcp__files__read", "", "x" * 200, None],
)
def test_everything_else_is_not(name: Any) -> None:  # noqa: ANN401 - any JSON
    assert not ToolTable().compactable(name)


def call(name: str, given: Any) -> dict[str, Any]:  # noqa: ANN401 - a call's input
    return {"type": "tool_use", "id": "t", "name": name, "input": given}


@pytest.mark.parametrize(
    ("command", "kind"),
    [("view", "Read"), ("create", "Write"), ("str_replace", "Edit"), ("insert", "Edit"), (7, "Edit")],
)
def test_an_editor_says_in_its_input_what_it_does(command: Any, kind: str) -> None:  # noqa: ANN401 - any JSON
    assert ToolTable().kind_of_call(call("str_replace_editor", {"command": command})) == kind


@pytest.mark.parametrize("given", [None, "view", {}])
def test_an_editor_that_does_not_say_edits(given: Any) -> None:  # noqa: ANN401 - any JSON
    assert ToolTable().kind_of_call(call("str_replace_editor", given)) == "Edit"


def test_a_session_can_add_and_remove_tools() -> None:
    table = tool_table({"compactable_tools": {"fetch_rows": True, "my_reader": "read", "Bash": False, "Grep": True}})
    assert table.problems == ()
    assert table.kind("fetchRows") == OTHER
    assert table.kind("my-reader") == "Read"
    assert table.kind("Bash") is None
    assert table.kind("Grep") == "Grep"
    assert table.kind("shell") == "Bash"


@pytest.mark.parametrize("name", ["AskUserQuestion", "agent", "Task", "spawn_agent"])
@pytest.mark.parametrize("value", [True, "Read"])
def test_no_setting_makes_agents_and_questions_clearable(name: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    table = tool_table({"compactable_tools": {name: value}})
    assert not table.compactable(name)
    assert table.problems == (
        "Entry 1 of compactable_tools names a tool whose results are never cleared; it is ignored.",
    )


@pytest.mark.parametrize("value", [None, 1, [], {}, "Teleport"])
def test_an_entry_that_is_not_understood_is_ignored_and_noted(value: Any) -> None:  # noqa: ANN401 - any JSON
    table = tool_table({"compactable_tools": {"secret_tool": value, "ok": True}})
    assert (table.kind("secret_tool"), table.kind("ok")) == (None, OTHER)
    assert len(table.problems) == 1
    assert "secret" not in table.problems[0]


@pytest.mark.parametrize("name", ["", " - ", "n" * 200])
def test_a_name_that_is_none_is_noted(name: str) -> None:
    assert tool_table({"compactable_tools": {name: True}}).problems == (
        "Entry 1 of compactable_tools is no tool name; it is ignored.",
    )


def test_a_setting_that_is_no_object_is_ignored_and_noted() -> None:
    table = tool_table({"compactable_tools": ["Read"]})
    assert table.compactable("Bash")
    assert len(table.problems) == 1


@pytest.mark.parametrize("settings", [None, {}, {"compactable_tools": None}])
def test_without_the_setting_the_built_in_table_holds(settings: dict[str, Any] | None) -> None:
    assert tool_table(settings) == ToolTable()


def test_the_setting_has_a_limit() -> None:
    table = tool_table({"compactable_tools": {f"tool{number}": True for number in range(MAX_SETTINGS + 1)}})
    assert table.compactable("tool199")
    assert not table.compactable("tool200")
    assert len(table.problems) == 1
