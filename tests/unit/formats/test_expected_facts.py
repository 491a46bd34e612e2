"""Real logs give the facts that two independent readers agreed on. The logs are not part of the project."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pytest

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import decode_message
from compaction.errors import InvalidRequest
from compaction.formats import claude_code, read
from compaction.formats.turns import entry_of, turn_facts

REPOSITORY = Path(__file__).resolve().parents[3]
TRANSCRIPTS = Path(os.environ.get("COMPACTD_TEST_TRANSCRIPTS", REPOSITORY.parent / "shared" / "transcripts"))
SAME_NAME = (
    "lines",
    "objects",
    "row_types",
    "sidechain_rows_skipped",
    "sidechain_conversation_rows_skipped",
    "synthetic_assistant_rows_dropped",
    "meta_user_rows",
    "api_error_rows",
    "off_branch_rows",
    "file_order_messages",
    "last_usage",
    "duplicate_uuid_rows",
    "starts_mid_chain",
    "missing_parents",
)
VIEW = {  # the names of a view's counts in the expected facts → in ours; repairs are not the importer's work
    "messages": "messages",
    "rows_used": "rows_used",
    "first_role": "first_role",
    "last_role": "last_role",
    "tool_use": "tool_use",
    "tool_result": "tool_result",
    "orphan_tool_use": "orphan_tool_use",
    "synthetic_results_needed": "orphan_tool_use",
    "orphan_tool_use_in_last_message": "orphan_tool_use_in_last_message",
    "orphan_tool_result": "orphan_tool_result",
    "blank_text_blocks_dropped": "blank_text_blocks",
    "thinking_blocks": "thinking_blocks",
    "image_blocks": "image_blocks",
    "document_blocks": "document_blocks",
}
BOUNDARY = {"preTokens": "pre_tokens", "tokensSaved": "tokens_saved"}
NOT_OURS = {"est_tokens_chars4_before"}  # indicative only


@cache
def expected() -> dict[str, Json]:
    path = TRANSCRIPTS / "expected.json"
    if not path.exists():
        return {}
    files: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))["files"]
    return files


def conversations() -> list[Json]:
    names = [name for name, facts in expected().items() if facts["thread"] != "none"]
    skipped = pytest.mark.skip(reason="the folder of real transcripts is not here (COMPACTD_TEST_TRANSCRIPTS)")
    return names or [pytest.param("", marks=skipped)]


@pytest.mark.parametrize("name", conversations())
def test_a_real_log_gives_the_expected_report(name: str) -> None:
    want = expected()[name]
    with (TRANSCRIPTS / name).open("rb") as file:
        got = read(file).report.to_dict()
    assert {key: got[key] for key in SAME_NAME} == {key: want[key] for key in SAME_NAME}
    assert {key: got["malformed"][key] for key in want["malformed"]} == want["malformed"]
    assert (got["format"], got["thread"]) == ("claude_code", want["thread"])
    assert got["full_history"]["api_messages"] == want["api_messages"]
    for view in ("full_history", "current_window"):
        assert {key: got[view][ours] for key, ours in VIEW.items()} == {key: want[view][key] for key in VIEW}


@pytest.mark.parametrize("name", conversations())
def test_a_real_log_gives_the_expected_boundaries(name: str) -> None:
    want = expected()[name]["boundaries"]
    with (TRANSCRIPTS / name).open("rb") as file:
        got = read(file).report.to_dict()["boundaries"]
    named = [{BOUNDARY.get(key, key): value for key, value in one.items() if key not in NOT_OURS} for one in want]
    assert [{key: one[key] for key in told} for one, told in zip(got, named, strict=True)] == named


@pytest.mark.parametrize("name", conversations())
def test_what_is_stored_of_a_real_log_gives_the_expected_counts(name: str) -> None:
    with (TRANSCRIPTS / name).open("rb") as file:
        transcript = read(file)
        messages = [decode_message(body) for body in transcript.bodies()]
    report = transcript.report
    boundaries = [index for index, one in enumerate(messages) if one.is_boundary]
    entries = [entry_of(one) for one in messages]
    window = entries[boundaries[-1] + 1 :] if boundaries else entries
    for view, told in ((entries, report.full_history), (window, report.current_window)):
        assert turn_facts([one for one in view if one is not None], rows_used=told.rows_used) == told
    assert len(messages) == report.stored_messages == len({one.uuid for one in messages})


@pytest.mark.parametrize("name", conversations())
def test_the_content_of_a_real_log_is_stored_byte_for_byte(name: str) -> None:
    """Bodies come in file order, so each content must stand in the file behind the one before it."""
    path, place = TRANSCRIPTS / name, 0
    whole = path.read_bytes()
    with path.open("rb") as file:
        for body in claude_code.read(file).bodies():
            place = whole.index(b'"content":' + jsonbytes.members(body)["content"], place) + 1


def test_a_real_log_without_a_conversation_is_refused() -> None:
    empty = [name for name, facts in expected().items() if facts["thread"] == "none"]
    if not empty:
        pytest.skip("the folder of real transcripts is not here (COMPACTD_TEST_TRANSCRIPTS)")
    for name in empty:
        with (TRANSCRIPTS / name).open("rb") as file, pytest.raises(InvalidRequest, match="holds no conversation"):
            read(file)
