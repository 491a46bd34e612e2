"""Exit codes, and failures in words that say what to do.

0  done
1  the job failed or was cancelled
2  wrong usage: also an id that no session can have, a file that is empty or cannot be read, a malformed address or key
3  the API cannot be reached
4  there is no such session, job or file
5  the key is not valid, or lacks the scope
6  the API refused the request
7  the job had not ended in the given time
8  the doctor found something wrong
9  the job has no result: it was skipped, failed, was cancelled or goes on
130  interrupted
"""

from __future__ import annotations

from dataclasses import dataclass

from compaction.client import BadAddress, Refused, TimedOut, Unreachable

OK = 0
JOB_FAILED = 1
USAGE = 2
UNREACHABLE = 3
NOT_FOUND = 4
NOT_ALLOWED = 5
REFUSED = 6
TIMED_OUT = 7
UNWELL = 8
NO_RESULT = 9
INTERRUPTED = 130  # 128 + SIGINT, as shells count


class NoStack(Exception):
    """Neither the environment nor a credentials file tells where the API is."""


class EmptyFile(Exception):
    """A file with nothing but blanks in it; the text is its path."""


class NoResult(Exception):
    """A job without a result; the text says why, and what to do."""


_SEE_ERRORS = "; see `errors`"  # they stand in the lines below it
_ADVICE = {
    "GET /v1/compactions ": "`compactd jobs` lists the newest.",
    "PUT /v1/sessions": "`compactd import PATH` makes one; `compactd jobs` shows which ones have jobs.",
    "Prefer: wait": "`compactd wait JOB` waits for it.",
}
_VARIABLES = {"url": "COMPACTD_URL", "api_key": "COMPACTD_API_KEY"}
_CODES = {"not_found": NOT_FOUND, "unauthorized": NOT_ALLOWED, "forbidden": NOT_ALLOWED}


@dataclass(frozen=True, slots=True)
class Told:
    """A failure as a person reads it, and the command's exit code."""

    words: str
    exit_code: int


def told(error: Exception) -> Told | None:
    """The words for `error`; None for one that nobody foresaw."""
    match error:
        case Refused():
            return _refusal(error)
        case TimedOut():
            return Told(f"{error} It goes on; `compactd wait` waits for it.", TIMED_OUT)
        case Unreachable():
            return Told(f"{error} Start the local stack with `make up`, or set COMPACTD_URL.", UNREACHABLE)
        case NoStack() | NoResult():
            return Told(str(error), UNREACHABLE if isinstance(error, NoStack) else NO_RESULT)
        case OSError() | EmptyFile() | BadAddress():
            return _wrong_usage(error)
    return None


def _wrong_usage(error: OSError | EmptyFile | BadAddress) -> Told:
    if isinstance(error, BadAddress):
        return Told(f"{_VARIABLES[error.what]} {error.problem}", USAGE)
    if isinstance(error, EmptyFile):
        return Told(f"{error} is empty: there is nothing to import.", USAGE)
    if isinstance(error, IsADirectoryError):
        return Told(f"{error.filename} is a folder. Name a file; `compactd import` takes folders too.", USAGE)
    if isinstance(error, FileNotFoundError):
        return Told(f"There is no file {error.filename}.", NOT_FOUND)
    if isinstance(error, FileExistsError):
        return Told(f"{error.filename} is there already, and no file is written over. Name a new one.", USAGE)
    return Told(f"{error.filename or 'A file'} cannot be used: {error.strerror}.", USAGE)


def _refusal(error: Refused) -> Told:
    words = str(error).replace(_SEE_ERRORS, "")
    for marker, advice in _ADVICE.items():
        if marker in error.detail:  # the API's advice is for those who speak HTTP
            words = f"{error.detail.partition('. ')[0]}. {advice}"
    if error.code == "unauthorized":
        words = "The API does not take this key. Set COMPACTD_API_KEY to a valid one, or unset it for the local stack."
    if error.status >= 500 and error.request_id:  # noqa: PLR2004 - the server's own failures
        words += f" (request {error.request_id})"
    return Told(words, _CODES.get(error.code, REFUSED))
