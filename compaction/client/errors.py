"""What can go wrong for a client.

ClientError
├── Unreachable   no answer came: nobody listens there, or the connection broke
├── Refused       the API said no; carries the problem's status, code, request_id and wrong fields
└── TimedOut      the job had not ended in the time that the caller gave
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The call did not do what was asked."""


class Unreachable(ClientError):
    """No answer came."""


class TimedOut(ClientError):
    """The job had not ended in the given time; it goes on."""


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
