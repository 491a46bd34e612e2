"""Files followed through an agent's own tool calls."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core.messages import Message
from compaction.core.microcompact import CLEARED
from compaction.core.recent_files import MAX_FOLLOWED_CHARS, path_of, recent_files, shown_files
from compaction.core.tool_table import ToolTable


class Work:
    """Builds a transcript call by call."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def did(self, name: str, given: Any, told: Any = "ok", *, failed: bool = False) -> Work:  # noqa: ANN401 - any JSON
        ident = f"t{len(self.messages)}"
        result = {
            "type": "tool_result",
            "tool_use_id": ident,
            "content": told,
            **({"is_error": True} if failed else {}),
        }
        call = {"type": "tool_use", "id": ident, "name": name, "input": given}
        self.messages += [Message(role="assistant", content=[call]), Message(role="user", content=[result])]
        return self

    def read(self, path: str, told: Any, **part: Any) -> Work:  # noqa: ANN401 - any JSON
        return self.did("Read", {"file_path": path, **part}, told)

    def edit(self, path: str, old: str, new: str, **more: Any) -> Work:  # noqa: ANN401 - any JSON
        return self.did("Edit", {"file_path": path, "old_string": old, "new_string": new, **more})

    def files(self) -> dict[str, str]:
        return {note.name: note.text for note in recent_files(self.messages, ToolTable())}


NUMBERED = "     1→import os\n     2→\n     3→print(os.name)"
PLAIN = "import os\n\nprint(os.name)"


def test_a_read_shows_a_file_without_line_numbers() -> None:
    assert Work().read("a.py", NUMBERED).files() == {"a.py": PLAIN}
    assert Work().read("a.py", NUMBERED.replace("→", "\t")).files() == {"a.py": PLAIN}
    assert Work().read("a.py", PLAIN).files() == {"a.py": PLAIN}


def test_what_a_client_puts_around_a_file_is_left_out() -> None:
    assert Work().read(
        "a.py", f"Here is a.py:\n{NUMBERED}\n\n<system-reminder>Be careful.</system-reminder>"
    ).files() == {"a.py": PLAIN}


def test_a_write_shows_it_too() -> None:
    assert Work().did("Write", {"file_path": "a.py", "content": PLAIN}).files() == {"a.py": PLAIN}
    assert Work().did("write_file", {"path": "a.py", "content": PLAIN}).files() == {"a.py": PLAIN}
    assert Work().did("str_replace_editor", {"command": "create", "path": "a.py", "file_text": PLAIN}).files() == {
        "a.py": PLAIN
    }


def test_the_file_touched_last_comes_first() -> None:
    work = Work().read("a", "aaa").read("b", "bbb").read("c", "ccc").edit("a", "aaa", "xxx")
    assert list(work.files()) == ["a", "c", "b"]


def test_edits_are_carried_out() -> None:
    work = Work().read("a.py", NUMBERED).edit("a.py", "import os\n\nprint", "import os\n\nlog")
    assert work.files() == {"a.py": "import os\n\nlog(os.name)"}
    assert work.edit("a.py", "os", "sys", replace_all=True).files() == {"a.py": "import sys\n\nlog(sys.name)"}
    assert Work().read("a", "x x").edit("a", "x", "y").files() == {"a": "y x"}
    assert Work().read("a", "x y").edit("a", "x ", "").files() == {"a": "y"}


def test_several_edits_in_one_call() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "b c", "new_string": "d"}]
    assert Work().read("f", "a c").did("MultiEdit", {"file_path": "f", "edits": edits}).files() == {"f": "d"}
    assert Work().read("f", "a c").did("MultiEdit", {"file_path": "f", "edits": [*edits, "odd"]}).files() == {}


def test_an_edit_can_make_a_file() -> None:
    assert Work().edit("new", "", "hello").files() == {"new": "hello"}
    assert Work().read("new", "old").edit("new", "", "hello").files() == {}


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "a", "old_string": "nowhere", "new_string": "x"},
        {"file_path": "a", "old_string": "text"},
        {"file_path": "a", "old_string": None, "new_string": "x"},
        {"file_path": "a", "insert_line": 3, "insert_text": "x"},
    ],
)
def test_after_an_edit_that_does_not_fit_the_file_is_not_known(given: dict[str, Any]) -> None:
    work = Work().read("a", "some text").did("Edit", given)
    assert work.files() == {}
    assert work.read("a", "all of it").files() == {"a": "all of it"}


def test_an_edit_of_a_file_never_seen_shows_nothing() -> None:
    assert Work().edit("a", "x", "y").files() == {}


def test_a_failed_call_changes_nothing() -> None:
    given = {"file_path": "a", "old_string": "nowhere", "new_string": "x"}
    assert Work().read("a", "some text").did("Edit", given, "not found", failed=True).files() == {"a": "some text"}


def test_a_part_is_shown_with_its_numbers_and_spoils_no_whole() -> None:
    part = "    11→def f():\n    12→    pass"
    assert Work().read("a", part, offset=11, limit=2).files() == {"a": part}
    assert Work().read("a", "whole").read("a", part, offset=11).files() == {"a": "whole"}


def test_a_result_that_was_cleared_spoils_nothing() -> None:
    assert Work().read("a", "whole").read("a", CLEARED).files() == {"a": "whole"}
    assert Work().read("a", CLEARED).files() == {}


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        "",
        [{"type": "image", "source": {}}],
        [{"type": "text", "text": "a"}, "odd"],
        "<system-reminder>The file is empty.</system-reminder>",
    ],
)
def test_what_is_no_text_is_no_file(told: Any) -> None:  # noqa: ANN401 - any content
    assert Work().read("a", told).files() == {}


def test_blocks_of_text_are_joined() -> None:
    assert Work().read("a", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]).files() == {
        "a": "one\ntwo"
    }


def test_a_patch_makes_its_files_unknown() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
    work = Work().read("a.py", "x").read("c.py", "c")
    assert work.did("apply_patch", {"input": patch, "number": 7}).files() == {"c.py": "c"}
    assert Work().read("a.py", "x").did("apply_patch", patch).files() == {}


@pytest.mark.parametrize("given", [None, "a.py", {}, {"file_path": 7}, {"file_path": " "}])
def test_a_call_without_a_path_is_passed_over(given: Any) -> None:  # noqa: ANN401 - any JSON
    work = Work().did("Read", given, "text")
    assert work.files() == {}
    assert path_of(work.messages[0].blocks()[0]) is None
    assert shown_files(work.messages, ToolTable()) == frozenset()


def test_a_write_without_content_is_not_known() -> None:
    assert Work().did("Write", {"file_path": "a"}).files() == {}


def test_other_tools_show_no_files() -> None:
    assert Work().did("Bash", {"path": "a.py", "command": "cat a.py"}, "x = 1").files() == {}


def test_a_huge_file_is_followed_at_its_beginning() -> None:
    work = Work().read("a", "x" * (MAX_FOLLOWED_CHARS + 1)).did("Write", {"file_path": "b", "content": "y" * 300_000})
    assert {name: len(text) for name, text in work.files().items()} == {
        "a": MAX_FOLLOWED_CHARS,
        "b": MAX_FOLLOWED_CHARS,
    }


def test_kept_messages_show_what_was_read_or_written_in_them() -> None:
    work = (
        Work()
        .read("read", "text")
        .did("Write", {"file_path": "written", "content": "x"})
        .edit("edited", "a", "b")
        .read("cleared", CLEARED)
        .did("Read", {"file_path": "failed"}, "no such file", failed=True)
        .did("Bash", {"path": "run"})
    )
    assert shown_files(work.messages, ToolTable()) == {"read", "written"}


def test_at_most_so_many_files_come_back_and_none_that_is_passed() -> None:
    work = Work().read("a.py", "a").read("b.py", "b").read("c.py", "c")
    told = recent_files(work.messages, ToolTable(), passed={"c.py"}, most=1)
    assert [note.name for note in told] == ["b.py"]


def test_a_file_that_is_not_known_takes_no_place() -> None:
    work = Work().read("a.py", "a").read("b.py", "b").edit("b.py", "nowhere", "x")
    assert [note.name for note in recent_files(work.messages, ToolTable(), most=1)] == ["a.py"]
