"""What can go wrong for a client.

ClientError
├── Unreachable      no answer came: nobody listens there, or the connection broke
├── Refused          the API said no; carries the problem's status, code, request_id and wrong fields
│   └── Stale        `apply`: your copy is not what the result replaces; says where it differs
├── BadAddress       the address or the key that a client was given cannot be one
├── Closed           the client was closed, before the call or while it waited
├── TimedOut         the job had not ended in the time that the caller gave
├── ContextFull      an agent's history has reached the mark where nothing more fits, and no compaction helped
└── ForgedWebhook    a webhook's signature is wrong, or it is too old
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal


class ClientError(Exception):
    """The call did not do what was asked."""


class Unreachable(ClientError):
    """No answer came."""


class BadAddress(ClientError):
    """The address of the API or the key for it is malformed; `what` says which. The text never has the value in it."""

    def __init__(self, what: Literal["url", "api_key"], problem: str) -> None:
        self.what = what
        self.problem = problem
        super().__init__(f"{what} {problem}")


class Closed(ClientError):
    """The client was closed; what this call asked for may have been done. Make a new client to go on."""

    def __init__(self, words: str = "The client was closed. Make a new one to go on.") -> None:
        super().__init__(words)


class TimedOut(ClientError):
    """The job had not ended in the given time; it goes on."""


class ContextFull(ClientError):
    """Nothing more fits into the window, and no compaction helped; `reason` is the job's error code or skip reason."""

    def __init__(self, session_id: str, reason: str) -> None:
        self.session_id = session_id
        self.reason = reason
        super().__init__(f"The session {session_id} is full, and compacting it came to nothing: {reason}.")


class ForgedWebhook(ClientError):
    """Do not believe it: the signature is not of the given secret, or the time is more than five minutes off."""


class Refused(ClientError):
    """The API refused the call. `code` is stable (DESIGN §8), `detail` is for people, `errors` names wrong fields."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.detail = str(problem.get("detail", f"The answer has status {status}."))
        self.request_id = problem.get("request_id")
        self.errors: list[dict[str, str]] = list(problem.get("errors", []))
        fields = "".join(f"\n  {item.get('path')}: {item.get('problem')}" for item in self.errors)
        super().__init__(self.detail + fields)


class Stale(Refused):
    """Your copy is not what the result replaces; nothing was changed.

    `length` is how many messages the result replaces, `first_differing_index` counts from 0 and is None when no list
    of hashes was sent. Equal, they say that your copy is the same and only longer.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(status, problem)
        self.length: int | None = problem.get("length")
        self.first_differing_index: int | None = problem.get("first_differing_index")
        self.covers_through_seq: int | None = problem.get("covers_through_seq")

    @property
    def only_longer(self) -> bool:
        """Whether the copy begins with all that the result replaces."""
        return bool(self.length) and self.length == self.first_differing_index


def refusal(status: int, problem: Mapping[str, Any]) -> Refused:
    """The error for a problem document."""
    return (Stale if problem.get("code") == "stale" else Refused)(status, problem)
