"""What an agent's history asks for in one session: one compaction at a time, and none that is lost.

A request whose answer does not come may have been carried out. It is sent again under its own idempotency key until it
is answered, also across the loop's calls, so that the job which it made is found and no second one is paid for.
"""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from uuid import uuid4

from compaction.client.client import Client
from compaction.client.errors import ClientError, Refused
from compaction.client.http import is_passing
from compaction.client.shapes import Trigger


class Asking:
    """The job that was asked for in the session `session_id`; `job_id` is None while there is none."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.session_id = session_id
        self.job_id: str | None = None
        self._client = client
        self._unanswered: tuple[str, Trigger] | None = None  # its idempotency key, and what was asked for

    async def ask(self, trigger: Trigger) -> str:
        """The id of the job that was asked for, or of a new one. Raises Unreachable and Refused."""
        if self.job_id is None:
            key, wanted = self._unanswered = self._unanswered or (uuid4().hex, trigger)
            try:
                job = await self._client.enqueue(self.session_id, trigger=wanted, idempotency_key=key)
            except Refused as error:
                if not says_nothing(error):
                    self._unanswered = None
                raise
            self.job_id, self._unanswered = job["id"], None
        return self.job_id

    async def known(self) -> str | None:
        """The id of the job that was asked for, if any was, also where the answer was lost. Raises like `ask`."""
        return self.job_id if self._unanswered is None else await self.ask(self._unanswered[1])

    def found(self, job_id: str) -> None:
        """A job that has a result for this session, whoever asked for it."""
        self.job_id = job_id

    def ended(self) -> None:
        """The job has come to its end, and what came of it was seen to."""
        self.job_id = None

    async def abandon(self) -> None:
        """Cancels the job, if that can be done; nobody waits for it any more."""
        if self.job_id is not None:
            with contextlib.suppress(ClientError):  # it has ended, or goes on and harms nobody
                await self._client.cancel(self.job_id)


def says_nothing(error: Refused) -> bool:
    """Whether a refusal leaves open what became of the call: the API is busy, failed, or still has the first try."""
    return is_passing(error) or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code == "conflict"
