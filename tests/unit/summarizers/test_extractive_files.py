"""Files: what was done to each, and what its last edit says, whatever the tools are called."""

from __future__ import annotations

from compaction.core.messages import Message
from tests.unit.summarizers.talk import asked, called, filler, sections, summary_message, user

RETRY = "/srv/shop/retry.py"


def edited(old: str, new: str, *, path: str = RETRY, result: str = "ok", is_error: bool = False) -> list[Message]:
    return called("Edit", result, is_error=is_error, file_path=path, old_string=old, new_string=new)


def test_an_edited_file_tells_counts_the_last_change_and_its_text() -> None:
    talk = asked(
        user("go"),
        called("Read", "a = 1", file_path=RETRY),
        edited("a = 1", "a = 2"),
        edited("b = 1", "def delay(attempt):\n    return 30 * attempt"),
        filler(),
    )

    assert sections(talk)[3] == (
        "- `/srv/shop/retry.py`: read 1×, edited 2×; last change: 1 line replaced by 2\n"
        "  Defines or changes: `delay`\n"
        "  | a = 2\n"
        "  | ⋮\n"
        "  | def delay(attempt):\n"
        "  |     return 30 * attempt\n"
        "- Only read: `/srv/shop/filler.py`"
    )


def test_a_written_file_is_new_and_shows_its_beginning() -> None:
    text = "\n".join(f"LINE_{number} = {number}" for number in range(40))
    shown = sections(asked(called("Write", "created", file_path=RETRY, content=text), filler()))[3]

    assert "`/srv/shop/retry.py`: new file, written 1×; last change: whole file written, 40 lines" in shown
    assert "  | LINE_13 = 13\n  | [… 26 more lines]" in shown


def test_what_a_later_edit_replaced_is_not_shown_as_current() -> None:
    shown = sections(asked(edited("x", "LIMIT = 8\nCAP = 1"), edited("LIMIT = 8", "LIMIT = 50"), filler()))[3]

    assert "  | LIMIT = 50\n  | CAP = 1" in shown
    assert "LIMIT = 8" not in shown


def test_an_edit_of_imports_does_not_hide_the_one_before() -> None:
    shown = sections(asked(edited("a", "LIMIT = 8"), edited("import os", "import os\nimport sys"), filler()))[3]

    assert "last change: 1 line replaced by 2\n  | LIMIT = 8" in shown


def test_a_failed_edit_is_not_counted() -> None:
    failed = edited("no such text", "LIMIT = 9", result="String to replace not found", is_error=True)
    shown = sections(asked(edited("a", "LIMIT = 8"), failed, filler()))[3]

    assert "edited 1×" in shown
    assert "a later edit of it did not go through" in shown
    assert "LIMIT = 9" not in shown


def test_files_of_other_producers_tools_are_found() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/b.py\n+z\n*** End Patch"
    talk = asked(
        called("apply_patch", "done", input=patch),
        called(
            "shell",
            "done",
            command=["bash", "-lc", "apply_patch <<'EOF'\n" + patch.replace("src/b", "src/c") + "\nEOF"],
        ),
        called("str_replace_based_edit_tool", "text", command="view", path="src/seen.py"),
        called(
            "str_replace_based_edit_tool", "ok", command="str_replace", path="src/d.py", old_str="a", new_str="q = 1"
        ),
        called("write_to_file", "ok", path="src/e.py", content="w = 1"),
        called("mcp__files__read_file", "text", path="src/f.py"),
        called("MultiEdit", "ok", file_path="src/g.py", edits=[{"old_string": "a", "new_string": "m = 1"}]),
        called("NotebookEdit", "ok", notebook_path="src/n.ipynb", new_source="plot()"),
        filler(),
    )
    shown = sections(talk)[3]

    for path in ("src/a.py", "src/b.py", "src/c.py", "src/d.py", "src/g.py", "src/n.ipynb"):
        assert f"- `{path}`: edited" in shown
    assert "- `src/e.py`: new file, written 1×" in shown
    assert "- Only read: `src/seen.py`, `src/f.py`" in shown
    assert "  | m = 1" in shown
    assert "  | plot()" in shown


def test_the_changed_files_stay_when_there_is_no_room_for_those_only_read() -> None:
    reads = [called("Read", "text", file_path=f"/srv/shop/deep/folder/number_{n}/module_{n}.py") for n in range(300)]
    shown = sections(asked(*reads, edited("a", "LIMIT = 8"), filler(), max_output_tokens=1_500))[3]

    assert "`/srv/shop/retry.py`: edited 1×" in shown
    assert "more" in shown or "left out" in shown


def test_a_file_of_an_earlier_summary_adds_up() -> None:
    before = (
        "3. Files and Code Sections:\n"
        "- `/srv/shop/retry.py`: read 2×, edited 1×; last change: 1 line replaced by 4\n"
        "  Defines or changes: `delay`\n"
        "  | def delay():\n"
        "- `/srv/shop/kept.py`: edited 1×; last change: 2 lines replaced by 2\n"
        "  | KEPT = True\n"
        "4. Errors and Fixes:\n- None.\n"
    )
    shown = sections(asked(summary_message(before), user("go on"), edited("a", "LIMIT = 8"), filler()))[3]

    assert "- `/srv/shop/retry.py`: read 2×, edited 2×; last change: 1 line replaced by 1\n" in shown
    assert "  Before: last change: 1 line replaced by 4\n  Defines or changes: `delay`\n  | LIMIT = 8" in shown
    assert "- `/srv/shop/kept.py`: edited 1×; last change: 2 lines replaced by 2\n  | KEPT = True" in shown


def test_a_short_name_in_a_models_summary_is_the_file_with_that_end() -> None:
    before = "3. Files and Code Sections:\n   - **retry.py** - holds the backoff\n4. Errors and Fixes:\n   - none"
    shown = sections(asked(summary_message(before), user("go on"), edited("a", "LIMIT = 8"), filler()))[3]

    assert (
        "- `/srv/shop/retry.py`: edited 1×; last change: 1 line replaced by 1\n  **retry.py** - holds the backoff"
        in shown
    )
