"""The Python client: `async with Client(url, api_key) as client: …`.

`compaction.client.sync` is the same for code without await. `AgentHistory` keeps the history of an agent's loop
small, `verify_webhook` checks what a webhook brings. Errors are in `compaction.client.errors`, the shapes of answers in
`compaction.client.shapes`.
"""

from compaction.client.agent_history import AgentHistory
from compaction.client.client import Client
from compaction.client.errors import (
    BadAddress,
    ClientError,
    Closed,
    ContextFull,
    ForgedWebhook,
    Refused,
    Stale,
    TimedOut,
    Unreachable,
)
from compaction.client.shapes import (
    AnthropicRequest,
    Applied,
    Breaker,
    ChatRequest,
    Context,
    Imported,
    Job,
    Page,
    Readiness,
    Result,
    ResultFormat,
    Session,
)
from compaction.client.timeline import Happening
from compaction.client.webhooks import verify_webhook

__all__ = [
    "AgentHistory",
    "AnthropicRequest",
    "Applied",
    "BadAddress",
    "Breaker",
    "ChatRequest",
    "Client",
    "ClientError",
    "Closed",
    "Context",
    "ContextFull",
    "ForgedWebhook",
    "Happening",
    "Imported",
    "Job",
    "Page",
    "Readiness",
    "Refused",
    "Result",
    "ResultFormat",
    "Session",
    "Stale",
    "TimedOut",
    "Unreachable",
    "verify_webhook",
]
