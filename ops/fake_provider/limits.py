"""Which limit of the script a request breaks, and the refusal with its numbers filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from ops.fake_provider.counting import blocks_of, strings, tokens_in
from ops.fake_provider.script import Limit, Step


@dataclass(slots=True)
class Prompt:
    """The decoded body of a request, measured when somebody asks."""

    body: dict[str, Json]
    body_bytes: int
    _tokens: int | None = None

    @property
    def tokens(self) -> int:
        """System, tools and messages."""
        if self._tokens is None:
            self._tokens = tokens_in(*self._said)
        return self._tokens

    @property
    def max_tokens(self) -> int:
        """The output that was asked for."""
        asked = self.body.get("max_tokens")
        return asked if isinstance(asked, int) else 0

    @property
    def longest_string(self) -> int:
        """Characters."""
        return max((len(text) for text, _ in strings(*self._said)), default=0)

    def blocks(self, kinds: tuple[str, ...]) -> int:
        """How many blocks of these types it holds."""
        return blocks_of(frozenset(kinds), *self._said)

    @property
    def _said(self) -> tuple[Json, Json, Json]:
        return self.body.get("system"), self.body.get("tools"), self.body.get("messages")


def refusal(limits: tuple[Limit, ...], prompt: Prompt) -> Step | None:
    """The reply of the first limit that the prompt is over."""
    for limit in limits:
        compared, told = _measured(limit, prompt)
        if compared > limit.max:
            return _filled(limit.reply, measured=told, max_tokens=prompt.max_tokens)
    return None


def over_window(prompt: Prompt, window_tokens: int) -> Step | None:
    """The API's own refusal of a prompt that is over the model's window."""
    if prompt.tokens <= window_tokens:
        return None
    text = f"prompt is too long: {prompt.tokens} tokens > {window_tokens} maximum"
    return Step(status=400, body={"type": "error", "error": {"type": "invalid_request_error", "message": text}})


def _measured(limit: Limit, prompt: Prompt) -> tuple[int, int]:
    """What is compared with the limit, and what the reply calls measured."""
    match limit.limit:
        case "input_tokens":
            return prompt.tokens, prompt.tokens
        case "input_plus_output":
            return prompt.tokens + prompt.max_tokens, prompt.tokens
        case "body_bytes":
            return prompt.body_bytes, prompt.body_bytes
        case "max_tokens":
            return prompt.max_tokens, prompt.max_tokens
        case "part_chars":
            return prompt.longest_string, prompt.longest_string
        case "forbid_blocks":
            found = prompt.blocks(limit.types)
            return found, found


def _filled(step: Step, *, measured: int, max_tokens: int) -> Step:
    text = jsonbytes.encode(step.body).replace(b"{measured}", b"%d" % measured)
    return replace(step, body=jsonbytes.decode(text.replace(b"{max_tokens}", b"%d" % max_tokens)))
