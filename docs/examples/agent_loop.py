"""An agent that reads files, on the Messages API; compactd keeps its history small while it works.

    eval "$(compactd env)"                       # COMPACTD_URL, COMPACTD_API_KEY
    export ANTHROPIC_API_KEY=…                   # ANTHROPIC_BASE_URL where it is not the usual one
    python docs/examples/agent_loop.py agent-7 "Which modules have no tests?"

What compactd adds to the loop is `history.keep` and `history.request_options`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from anthropic.types import Message, ToolParam, ToolUseBlock

from compaction.client import AgentHistory, Client

MODEL = os.environ.get("AGENT_MODEL", "claude-haiku-4-5")
MAX_ROUNDS = int(os.environ.get("AGENT_MAX_ROUNDS", "50"))
MAX_CHARS = 20_000  # of one file
READ: ToolParam = {
    "name": "Read",
    "description": "Read a file, or list a folder.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def read(path: str) -> str:
    """What the tool gives: a file's text, or the names in a folder."""
    place = Path(path)
    try:
        if place.is_dir():
            return "\n".join(sorted(one.name for one in place.iterdir())) or "(empty)"
        return place.read_text(encoding="utf-8", errors="replace")[:MAX_CHARS] or "(empty)"
    except OSError as error:
        return f"{type(error).__name__}: {path}"


async def results(reply: Message) -> list[dict[str, Any]]:
    """The results of the calls in a reply, ready to append."""
    calls = [block for block in reply.content if isinstance(block, ToolUseBlock)]
    outputs = [await asyncio.to_thread(read, str(call.input.get("path", "."))) for call in calls]
    return [
        {"type": "tool_result", "tool_use_id": call.id, "content": output}
        for call, output in zip(calls, outputs, strict=True)
    ]


async def work(session_id: str, task: str) -> None:
    """Works until the model asks for no tool any more."""
    claude = AsyncAnthropic()
    async with claude, Client(os.environ["COMPACTD_URL"], os.environ["COMPACTD_API_KEY"]) as client:
        history = AgentHistory(client, session_id, model=MODEL, tools=[dict(READ)])
        messages: list[Any] = await history.load()  # [] for a new session; else the agent goes on where it was
        messages.append({"role": "user", "content": task})
        reply: Message | None = None
        for _ in range(MAX_ROUNDS):
            messages = await history.keep(messages, reply)
            reply = await claude.messages.create(
                model=MODEL, max_tokens=4_000, tools=[READ], messages=messages, **history.request_options
            )
            messages.append({"role": "assistant", "content": reply.content})
            if reply.stop_reason != "tool_use":
                break
            messages.append({"role": "user", "content": await results(reply)})
        await history.keep(messages, reply)  # the last words are stored too
    if history.last_result is not None:
        sizes = f"{history.last_result['pre_tokens']} tokens became {history.last_result['post_tokens']}"
        sys.stderr.write(f"compacted on the way: {sizes}\n")
    if reply is not None:
        sys.stdout.write("".join(block.text for block in reply.content if block.type == "text") + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:  # noqa: PLR2004 - the program, a session, a task
        sys.exit("usage: agent_loop.py SESSION TASK   (ANTHROPIC_API_KEY, COMPACTD_URL and COMPACTD_API_KEY are set)")
    asyncio.run(work(sys.argv[1], sys.argv[2]))
