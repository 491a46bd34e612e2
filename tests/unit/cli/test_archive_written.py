from __future__ import annotations

import pytest

from compaction.cli.archive_written import file_name


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        ("a_b", "a_b.compacted.jsonl"),
        ("a:b", "a%3Ab.compacted.jsonl"),
        ("agent-7.x", "agent-7.x.compacted.jsonl"),
        ("a/../b", "a%2F..%2Fb.compacted.jsonl"),
    ],
)
def test_a_session_gives_its_file_the_name_without_what_folders_cannot_hold(session_id: str, name: str) -> None:
    assert file_name(session_id) == name


def test_long_ids_stay_apart_in_names_that_file_systems_take() -> None:
    ids = [":" * 200, ":" * 199 + "a", ":" * 199 + "b"]
    names = {file_name(one) for one in ids}
    assert len(names) == len(ids)
    assert max(map(len, names)) <= 255
