from __future__ import annotations

import re

import pytest

from api.found import NO_JOB, NO_SESSION
from compaction.cli import failures
from compaction.cli.failures import EmptyFile, NoResult, NoStack, told
from compaction.cli.main import EXIT_CODES
from compaction.client import BadAddress, Refused, TimedOut, Unreachable


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (Refused(404, {"code": "not_found", "detail": "There is no job."}), 4, "There is no job."),
        (
            Refused(404, {"code": "not_found", "detail": NO_JOB}),
            4,
            "no job of this id. `compactd jobs` lists the newest.",
        ),
        (Refused(404, {"code": "not_found", "detail": NO_SESSION}), 4, "no session of this id. `compactd import PATH`"),
        (Refused(401, {"code": "unauthorized", "detail": "…"}), 5, "COMPACTD_API_KEY"),
        (Refused(403, {"code": "forbidden", "detail": "The key lacks the scope ops."}), 5, "scope ops"),
        (
            Refused(422, {"code": "invalid_request", "errors": [{"path": "trigger", "problem": "odd"}]}),
            6,
            "trigger: odd",
        ),
        (Refused(500, {"code": "internal", "detail": "It failed.", "request_id": "r-1"}), 6, "request r-1"),
        (Refused(502, {}), 6, "502"),
        (Unreachable("Nobody answers at http://x."), 3, "make up"),
        (NoStack("No compactd was found."), 3, "No compactd"),
        (NoResult("The job was skipped."), 9, "The job was skipped."),
        (BadAddress("url", "has no host."), 2, "COMPACTD_URL has no host."),
        (BadAddress("api_key", "is empty."), 2, "COMPACTD_API_KEY is empty."),
        (EmptyFile("a.jsonl"), 2, "a.jsonl is empty"),
        (TimedOut("The job has not ended."), 7, "compactd wait"),
        (FileNotFoundError(2, "No such file", "a.jsonl"), 4, "There is no file a.jsonl."),
        (PermissionError(13, "Permission denied", "a.jsonl"), 2, "a.jsonl cannot be used: Permission denied."),
    ],
)
def test_failures_have_an_exit_code_and_say_what_to_do(error: Exception, exit_code: int, words: str) -> None:
    found = told(error)
    assert found is not None
    assert found.exit_code == exit_code
    assert words in found.words


def test_a_failure_that_nobody_foresaw_is_not_hidden() -> None:
    assert told(KeyError("x")) is None


def test_the_exit_codes_are_those_of_the_help() -> None:
    codes = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, int)}
    for code in codes - {failures.INTERRUPTED}:
        assert re.search(rf"\b{code} [a-zA-Z]", EXIT_CODES), code
