"""The Python client: `async with Client(url, api_key) as client: …`; its errors are in `compaction.client.errors`."""

from compaction.client.client import Client
from compaction.client.errors import ClientError, Refused, TimedOut, Unreachable
from compaction.client.shapes import Breaker, Context, Imported, Job, Page, Result, Session

__all__ = [
    "Breaker",
    "Client",
    "ClientError",
    "Context",
    "Imported",
    "Job",
    "Page",
    "Refused",
    "Result",
    "Session",
    "TimedOut",
    "Unreachable",
]
