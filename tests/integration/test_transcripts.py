"""Real transcripts through the running service: imported, compacted without a model, and still whole afterwards.

The transcripts are not part of the project; the sample session stands in where their folder is not
(COMPACTD_TEST_TRANSCRIPTS names another one).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compaction import formats
from compaction.cli.sample import sample_session
from compaction.errors import InvalidRequest
from ops.embedded import Valkey
from tests.cases import shared
from tests.integration.service import Service
from tests.unit.core.rules import broken_rules, open_calls

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("COMPACTD_TEST_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts"))
FILES = sorted((FOLDER / "claude_code").rglob("*.jsonl"))
OTHERS = sorted(path for path in FOLDER.glob("*/**/*") if path.is_file() and path.suffix != ".jsonl")
ABSENT: Any = pytest.param(
    None, marks=pytest.mark.skip(reason=f"no transcripts at {FOLDER} (COMPACTD_TEST_TRANSCRIPTS)")
)
SAMPLE = "the sample session"
TOO_SMALL = {"nothing_to_compact", "not_effective"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """API and one worker that summarises without a model."""
    folder = tmp_path_factory.mktemp("transcripts")
    with Service(folder, module_database_url, valkey.url(), COMPACTD_SUMMARIZER="extractive") as running:
        yield running


def name_of(path: Path | str | None) -> str:
    """The test's name for a file."""
    return str(path.relative_to(FOLDER)) if isinstance(path, Path) else str(path)


def full_view(service: Service, session: str) -> bytes:
    """Everything that is stored of a session, as the service sends it."""
    return service.http.get(f"/v1/sessions/{session}/messages", params={"view": "full"}).content


def bodies_in(transcript: bytes, folder: Path) -> list[bytes] | None:
    """What our importer makes of a file; None when it refuses it."""
    path = folder / "transcript"
    path.write_bytes(transcript)
    with path.open("rb") as file:
        try:
            return list(formats.read(file).bodies())
        except InvalidRequest:
            return None


def problems_of(messages: list[Any]) -> list[str]:
    """The API's rules that a list breaks once the user has gone on: a call that is still open gets its result first."""
    answers = [{"type": "tool_result", "tool_use_id": ident, "content": "Done."} for ident in open_calls(messages)]
    sent = [*messages, {"role": "user", "content": [*answers, {"type": "text", "text": "Next question."}]}]
    judged = shared.validator().check_messages(sent) if shared.IS_HERE else []
    return broken_rules(sent) + [str(problem) for problem in judged]


@pytest.mark.parametrize("path", [SAMPLE, *(FILES or [ABSENT])], ids=name_of)
def test_a_transcript_is_compacted_into_a_valid_list_and_keeps_every_byte(
    service: Service, path: Path | str, tmp_path: Path
) -> None:
    """A log without a conversation is refused; one that is too small for a summary to help stays as it is."""
    body = b"".join(sample_session()) if isinstance(path, str) else path.read_bytes()
    answer = service.http.post("/v1/sessions/import", content=body)
    bodies = bodies_in(body, tmp_path)
    if bodies is None:
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        return
    assert answer.status_code == 200, answer.text
    session = answer.json()["session_id"]
    stored = b'{"data":[' + b",".join(bodies) + b'],"next_cursor":null,"has_more":false}'
    assert full_view(service, session) == stored
    job = service.compact(session)
    assert job["was_compacted"] or (job["reason"] or job["error"]["code"]) in TOO_SMALL
    if job["was_compacted"]:
        result = service.result(job["id"])
        assert result["degraded"] is True
        assert result["post_tokens"] < result["pre_tokens"]
        assert problems_of(result["api_messages"]) == []
    assert problems_of(service.view(session, "api")) == []
    assert full_view(service, session) == stored


@pytest.mark.parametrize("path", OTHERS or [ABSENT], ids=name_of)
def test_a_file_of_another_format_is_read_or_refused_with_a_problem(service: Service, path: Path) -> None:
    """Never an empty session, never a fault of ours."""
    answer = service.http.post("/v1/sessions/import", content=path.read_bytes())
    if answer.is_success:
        assert answer.json()["head_seq"] > 0
        return
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["code"] == "invalid_request"
