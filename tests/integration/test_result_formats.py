"""Results in other formats, by real jobs: what comes out is taken by those it is for, and by our own importer again.

Rules: the importer's, which real logs taught, and OpenAI's (`tests.unit.formats.chat_rules`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from compaction.cli.sample import sample_session
from ops.embedded import Valkey
from tests.integration.service import Service, history
from tests.integration.test_transcripts import ABSENT, FILES, name_of
from tests.unit.core.rules import open_calls
from tests.unit.formats.chat_rules import broken_rules

SAMPLE = b"".join(sample_session())

Json = Any


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """API and one worker that summarises without a model."""
    folder = tmp_path_factory.mktemp("formats")
    with Service(folder, module_database_url, valkey.url(), COMPACTD_SUMMARIZER="extractive") as running:
        yield running


def imported(service: Service, transcript: bytes, session: str) -> Json:
    answer = service.http.post("/v1/sessions/import", params={"session_id": session}, content=transcript)
    assert answer.status_code == 200, answer.text
    return answer.json()


def compacted(service: Service, transcript: bytes, **wanted: Json) -> Json:
    """The result for a transcript, under a session's name of its own."""
    session = f"first-{uuid4()}"
    imported(service, transcript, session)
    job = service.compact(session, **wanted)
    assert job["was_compacted"], job
    return service.result(job["id"])


def output(service: Service, result: Json, name: str) -> bytes:
    answer = service.http.get(f"/v1/compactions/{result['job_id']}/result", params={"format": name})
    assert answer.status_code == 200, answer.text
    return answer.content


def told(messages: list[Json]) -> list[tuple[str, Json, bool]]:
    return [
        (one["role"], one["content"], one.get("is_compact_summary", False))
        for one in messages
        if one["role"] != "system"
    ]


def with_blocks(messages: list[Json]) -> list[Json]:
    """Contents as blocks, so that two ways to write the same are equal."""

    def blocks(content: Json) -> Json:
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return [one | ({"content": blocks(one["content"])} if "content" in one else {}) for one in content]

    return [{"role": one["role"], "content": blocks(one["content"])} for one in messages]


def is_read_as_compacted(service: Service, log: bytes, result: Json) -> bytes:
    """Checks that the log with the result's rows behind it is one whose live view is the result; gives that log."""
    grown = log.removesuffix(b"\n") + b"\n" + output(service, result, "claude_code")
    fresh = f"fresh-{uuid4()}"
    before, report = imported(service, log, f"before-{uuid4()}")["report"], imported(service, grown, fresh)["report"]

    live = service.view(fresh, "live")
    if open_calls(result["api_messages"]):  # then attachments stand before the open round, as in what is sent
        assert sorted(map(str, told(live))) == sorted(map(str, told(result["messages"])))
    else:
        assert told(live) == told(result["messages"])
    assert service.view(fresh, "api") == result["api_messages"]
    assert live[0]["metadata"]["kind"] == "compact_boundary"
    assert live[0]["metadata"]["pre_tokens"] == result["pre_tokens"]
    [*_, boundary] = [one for one in report["boundaries"] if one["kind"] == "compact"]
    assert (boundary["on_branch"], boundary["logical_parent_in_file"]) == (True, True)
    assert (boundary["summary_line"] is None) == (result["strategy"] == "microcompact")
    for trouble in ("malformed", "duplicate_uuid_row_count", "off_branch_rows", "missing_parents", "starts_mid_chain"):
        assert report[trouble] == before[trouble], trouble
    everything = service.view(fresh, "full")
    assert everything[: before["stored_messages"]] == everything[: -len(result["messages"])]
    return grown


def test_the_sample_with_its_result_behind_it_is_read_as_compacted(service: Service) -> None:
    result = compacted(service, SAMPLE)
    is_read_as_compacted(service, SAMPLE, result)
    boundary, summary = map(json.loads, output(service, result, "claude_code").splitlines()[:2])
    last = json.loads(SAMPLE.splitlines()[-1])
    assert boundary["logicalParentUuid"] == last["uuid"]
    assert boundary["sessionId"] == summary["sessionId"] == result["session_id"]
    assert (summary["parentUuid"], summary["isCompactSummary"]) == (boundary["uuid"], True)


@pytest.mark.parametrize("kind", ["up_to", "from"])
def test_a_part_of_the_sample_is_read_as_compacted_too(service: Service, kind: str) -> None:
    """Messages that were kept stand in the file twice; their copies behind the boundary count."""
    rows = [json.loads(line) for line in SAMPLE.splitlines()]
    asked = [row for row in rows if row["type"] == "user" and isinstance(row["message"]["content"], str)]
    result = compacted(service, SAMPLE, scope={"kind": kind, "uuid": asked[len(asked) // 2]["uuid"]})
    assert len(told(result["messages"])) > 10
    is_read_as_compacted(service, SAMPLE, result)


def test_a_history_without_old_results_has_a_boundary_and_no_summary(service: Service) -> None:
    """The sample is old enough for micro-compaction, which brings it under its threshold alone."""
    result = compacted(service, SAMPLE, trigger="auto")
    assert result["strategy"] == "microcompact"
    is_read_as_compacted(service, SAMPLE, result)


def test_the_session_goes_on_in_the_log_and_is_compacted_once_more(service: Service) -> None:
    """The grown log, imported into the session itself, adds the boundary; what follows hangs on the last row."""
    first = compacted(service, SAMPLE)
    session = first["session_id"]
    grown = is_read_as_compacted(service, SAMPLE, first)
    imported(service, grown, session)
    assert told(service.view(session, "live")) == told(first["messages"])

    last = json.loads(grown.splitlines()[-1])
    story = [("user", f"Question {number}: " + "why is that so? " * 300) for number in range(8)]
    for number, (kind, text) in enumerate(turn for one in story for turn in (one, ("assistant", one[1]))):
        inner = {"role": kind, "content": text} | (
            {"id": f"msg_new{number}", "model": "m"} if kind == "assistant" else {}
        )
        last = last | {"type": kind, "message": inner, "parentUuid": last["uuid"], "uuid": str(uuid4())}
        last |= {"isCompactSummary": False, "isMeta": False}
        grown += json.dumps(last).encode() + b"\n"
    imported(service, grown, session)
    assert len(service.view(session, "live")) == len(first["messages"]) + 16
    job = service.compact(session)
    assert job["was_compacted"], job
    is_read_as_compacted(service, grown, service.result(job["id"]))


def test_an_open_call_is_still_open_in_every_format(service: Service) -> None:
    call = {"type": "tool_use", "id": "toolu_wait", "name": "AskApproval", "input": {"table": "invoices"}}
    service.put_session("open", [*history(10)[:-1], {"role": "assistant", "content": [call]}])
    result = service.result(service.compact("open")["id"])
    assert json.loads(output(service, result, "anthropic"))["messages"] == result["api_messages"]
    chat = json.loads(output(service, result, "openai"))["messages"]
    assert chat[-1]["tool_calls"][0]["id"] == "toolu_wait"
    assert broken_rules(chat) == []
    last = json.loads(output(service, result, "claude_code").splitlines()[-1])
    assert last["message"]["content"] == [call]


def test_a_chat_comes_back_as_a_chat(service: Service) -> None:
    """Compacted up to its middle and given as OpenAI takes it, it is imported as what it was."""
    calls = [f"call_{number}" for number in range(20)]
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    messages: list[Json] = [{"role": "system", "content": "Be kind."}]
    for number, call in enumerate(calls):
        asked = {"id": call, "type": "function", "function": {"name": "look", "arguments": f'{{"place": {number}}}'}}
        seen = [{"type": "text", "text": f"What is at {number}?"}, picture]
        messages += [
            {"role": "user", "content": seen},
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": call, "content": f"{number}: " + "nothing to be seen here. " * 100},
            {"role": "assistant", "content": f"Nothing at {number}."},
        ]
    chat = {"model": "gpt-5.2", "tools": [{"type": "function", "function": function}], "messages": messages}
    assert broken_rules(messages) == []
    session = f"chat-{uuid4()}"
    imported(service, json.dumps(chat).encode(), session)
    middle = service.view(session, "full")[40]
    job = service.compact(session, scope={"kind": "up_to", "uuid": middle["uuid"]})
    result = service.result(job["id"])

    given = json.loads(output(service, result, "openai"))
    assert broken_rules(given["messages"]) == []
    assert (given["model"], given["tools"]) == (chat["model"], chat["tools"])
    assert given["messages"][0] == messages[0]
    kept = [message for message in given["messages"] if message["role"] == "tool"]
    assert kept == [message for message in messages if message["role"] == "tool"][-len(kept) :]
    assert len(kept) >= 9

    again = f"again-{uuid4()}"
    assert imported(service, json.dumps(given).encode(), again)["report"]["format"] == "openai_chat"
    assert with_blocks(service.view(again, "api")) == with_blocks(result["api_messages"])


def test_a_request_of_the_messages_api_is_imported_as_what_it_was(service: Service) -> None:
    result = compacted(service, SAMPLE)
    for name in ("anthropic", "envelopes"):
        again = f"again-{uuid4()}"
        assert imported(service, output(service, result, name), again)["report"]["format"] == "anthropic_messages"
        assert service.view(again, "api") == result["api_messages"]


@pytest.mark.parametrize("path", FILES or [ABSENT], ids=name_of)
def test_a_real_log_with_its_result_behind_it_is_read_as_compacted(service: Service, path: Path) -> None:
    log = path.read_bytes()
    session = f"real-{uuid4()}"
    answer = service.http.post("/v1/sessions/import", params={"session_id": session}, content=log)
    if answer.status_code == 422:
        pytest.skip("nobody speaks in this log")
    job = service.compact(session)
    if not job["was_compacted"]:
        pytest.skip("there is nothing to compact")
    result = service.result(job["id"])
    is_read_as_compacted(service, log, result)
    assert broken_rules(json.loads(output(service, result, "openai"))["messages"]) == []
