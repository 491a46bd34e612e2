from __future__ import annotations

import json
from pathlib import Path

import pytest

from compaction.cli.connection import Address, address
from compaction.cli.failures import NoStack

STACK = {"url": "http://127.0.0.1:9", "api_key": "ck_local", "pids": {}}


def stack_in(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "stack.json").write_text(json.dumps(STACK))


def test_the_environment_comes_first(tmp_path: Path) -> None:
    stack_in(tmp_path / ".local")
    environment = {"COMPACTD_URL": "http://far", "COMPACTD_API_KEY": "ck_far"}
    assert address(environment, tmp_path) == Address("http://far", "ck_far")


def test_the_local_stack_is_found_in_a_folder_above(tmp_path: Path) -> None:
    stack_in(tmp_path / ".local")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert address({}, below) == Address("http://127.0.0.1:9", "ck_local")


def test_the_folder_of_the_local_stack_can_be_named(tmp_path: Path) -> None:
    stack_in(tmp_path / "elsewhere")
    assert address({"COMPACTD_LOCAL_DIR": str(tmp_path / "elsewhere")}, tmp_path).api_key == "ck_local"


def test_one_half_of_the_address_may_come_from_the_environment(tmp_path: Path) -> None:
    stack_in(tmp_path / ".local")
    assert address({"COMPACTD_API_KEY": "ck_mine"}, tmp_path) == Address("http://127.0.0.1:9", "ck_mine")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"url": "http://x"}'])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: str) -> None:
    folder = tmp_path / ".local"
    folder.mkdir()
    (folder / "stack.json").write_text(content)
    with pytest.raises(NoStack):
        address({"COMPACTD_LOCAL_DIR": str(folder)}, tmp_path)


def test_without_an_address_the_words_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoStack, match="make up"):
        address({"COMPACTD_LOCAL_DIR": str(tmp_path)}, tmp_path)
    with pytest.raises(NoStack, match="COMPACTD_API_KEY"):
        address({"COMPACTD_LOCAL_DIR": str(tmp_path), "COMPACTD_URL": "http://far"}, tmp_path)


def test_the_key_stands_in_no_repr() -> None:
    assert "ck_secret" not in repr(Address("http://x", "ck_secret"))
