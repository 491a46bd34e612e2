"""The sample session: the same for a seed, believable, and large enough that an automatic compaction would start."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest

from compaction.cli.sample import STARTED_AT, sample_session, write_sample
from compaction.cli.sample.rows import Row
from compaction.cli.sample.scenario import steps
from compaction.core import jsonbytes
from compaction.formats import claude_code

AUTO_THRESHOLD_TOKENS = 167_000  # DESIGN §3, a window of 200,000
BLOCKED_TOKENS = 177_000  # the same; more would not have been sent


def rows(seed: int = 4) -> list[Row]:
    return [jsonbytes.decode(line) for line in sample_session(seed)]


def assistants(found: list[Row]) -> list[Row]:
    return [row for row in found if row["type"] == "assistant"]


def prompt_tokens(row: Row) -> int:
    usage = row["message"]["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(usage[name]) for name in names)


def blocks(found: list[Row], kind: str) -> list[Row]:
    contents = [row["message"]["content"] for row in found if "message" in row]
    return [block for content in contents if isinstance(content, list) for block in content if block["type"] == kind]


def test_a_seed_gives_the_same_bytes_each_time() -> None:
    assert list(sample_session(7)) == list(sample_session(7))


def test_another_seed_gives_another_session() -> None:
    first, second = rows(1), rows(2)

    assert first[0]["sessionId"] != second[0]["sessionId"]
    assert blocks(first, "tool_result") != blocks(second, "tool_result")


def test_each_line_is_one_json_object_of_a_known_type() -> None:
    lines = list(sample_session())

    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert {jsonbytes.decode(line)["type"] for line in lines} == {
        "user",
        "assistant",
        "system",
        "progress",
        "file-history-snapshot",
    }


def test_the_chain_of_parents_is_complete() -> None:
    seen: set[str] = set()
    roots = []
    for row in rows():
        if "uuid" not in row:
            continue
        assert row["uuid"] not in seen
        if row["parentUuid"] is None:
            roots.append(row["type"])
        else:
            assert row["parentUuid"] in seen
        seen.add(row["uuid"])

    assert roots == ["progress"]


def test_each_call_has_one_result_behind_it_that_names_its_row() -> None:
    callers: dict[str, str] = {}
    answered = []
    for row in rows():
        for block in blocks([row], "tool_use"):
            callers[block["id"]] = row["uuid"]
        for block in blocks([row], "tool_result"):
            assert row["sourceToolAssistantUUID"] == row["parentUuid"] == callers[block["tool_use_id"]]
            answered.append(block["tool_use_id"])

    assert answered.count(answered[0]) == 1
    assert sorted(answered) == sorted(callers)


@pytest.mark.parametrize("seed", [*range(12), 1_000_003])
def test_the_last_usage_is_over_the_automatic_threshold_and_under_the_limit(seed: int) -> None:
    last = prompt_tokens(assistants(rows(seed))[-1])

    assert AUTO_THRESHOLD_TOKENS < last < BLOCKED_TOKENS
    assert abs(last - 170_000) < 4_000


def test_prompts_grow_from_response_to_response() -> None:
    prompts: dict[str, int] = {}
    for row in assistants(rows()):
        prompts.setdefault(row["message"]["id"], prompt_tokens(row))
    sizes = list(prompts.values())

    assert sizes == sorted(sizes)
    assert 40_000 < sizes[0] < 42_000  # README: the overhead of system prompt and tools is about 40,500


def test_the_cache_is_read_while_it_is_warm_and_written_anew_after_a_long_pause() -> None:
    reads = [row["message"]["usage"]["cache_read_input_tokens"] for row in assistants(rows())]

    assert min(reads) == 25_400  # only the part of the prompt that other sessions share
    assert max(reads) > 160_000
    assert sum(after < before for before, after in pairwise(reads)) >= 5


def test_only_the_last_fragment_of_a_response_reports_its_output() -> None:
    by_message: dict[str, list[int]] = {}
    for row in assistants(rows()):
        by_message.setdefault(row["message"]["id"], []).append(row["message"]["usage"]["output_tokens"])
    several = [counts for counts in by_message.values() if len(counts) > 1]

    assert several
    assert all(set(counts[:-1]) == {2} and counts[-1] > 2 for counts in several)


def test_time_goes_forward() -> None:
    stamps = [row["timestamp"] for row in rows() if "timestamp" in row]

    assert stamps == sorted(stamps)
    assert stamps[0] == "2026-03-11T08:02:11.140Z"


def test_the_start_can_be_moved() -> None:
    moved = jsonbytes.decode(next(sample_session(4, started_at=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC))))

    assert moved["timestamp"] == "2030-01-02T03:04:05.000Z"
    assert STARTED_AT.tzinfo is UTC


def test_the_session_has_what_makes_a_compaction_hard() -> None:
    found = rows()
    errors = [block for block in blocks(found, "tool_result") if block.get("is_error")]
    names = {block["name"] for block in blocks(found, "tool_use")}
    thoughts = blocks(found, "thinking")

    assert {"Read", "Grep", "Glob", "Edit", "Write", "Bash", "TodoWrite"} == names
    assert len(errors) >= 8
    assert len(thoughts) == 1
    assert len({row["message"]["model"] for row in assistants(found)}) == 1
    assert found[-1]["type"] == "user"  # the agent had not said what it makes of the last result
    assert blocks(found[-1:], "tool_result")[0]["is_error"]


def test_one_response_calls_several_tools_at_once() -> None:
    found = rows()
    calls = [row["message"]["id"] for row in assistants(found) if row["message"]["content"][0]["type"] == "tool_use"]

    assert max(calls.count(message) for message in calls) >= 3


def test_the_user_sets_rules_and_changes_their_mind() -> None:
    words = " ".join(step.user for step in steps())

    for rule in ("Never touch anything under invoicing/ledger", "No new dependencies", "never push to origin"):
        assert rule in words
    for turn in ("Actually, scrap the Redis part", "On second thought"):
        assert turn in words


def test_what_is_read_looks_like_a_grown_code_base_and_does_not_repeat_itself() -> None:
    results = [block["content"] for block in blocks(rows(), "tool_result")]
    files = [text for text in results if text.startswith("     1→")]
    lines = [line for text in files for line in text.split("\n")]

    assert len(files) > 25
    assert len(set(files)) == len(files)
    assert len({line[7:] for line in lines}) > len(lines) / 3


def test_edits_change_what_is_read_later() -> None:
    reads = [block["content"] for block in blocks(rows(), "tool_result") if "def deliver_invoice(" in block["content"]]

    assert "time.sleep(wait)" in reads[0]
    assert "plan_attempt(" in reads[-1]
    assert "time.sleep(wait)" not in reads[-1]


def test_no_path_of_a_real_machine_stands_in_it() -> None:
    whole = b"".join(sample_session())

    assert not any(f"/{folder}/".encode() in whole for folder in ("home", "root", "Users"))


def test_the_importer_takes_it_without_a_repair() -> None:
    report = claude_code.read(BytesIO(b"".join(sample_session()))).report

    assert report.malformed.line_count == 0
    assert report.off_branch_rows == 0
    assert report.full_history.tool_use == report.full_history.tool_result
    assert report.full_history.orphan_tool_use == report.full_history.orphan_tool_result == 0


def test_writing_it_gives_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "sample.jsonl"

    assert write_sample(path, 3) == path.stat().st_size
    assert path.read_bytes() == b"".join(sample_session(3))
