"""Token counts that fit together: what the API would report for each response of the sample."""

from __future__ import annotations

from compaction.core.messages import Usage

CHARS_PER_TOKEN = 2.74  # median over 330 real agent sessions
OVERHEAD_TOKENS = 40_500  # system prompt, tools and project memory in the same sessions
SYSTEM_TOKENS = 25_400  # the part of it that other sessions keep in the cache
CACHE_SECONDS = 300.0  # how long a cached prefix lives when nobody asks for it
EARLY_OUTPUT_TOKENS = 2  # what early fragments of a response report instead of the final count


class Meter:
    """Adds up what was said and says what the next request costs. Times are seconds since the session began."""

    def __init__(self) -> None:
        self._chars = 0
        self._cached_tokens = SYSTEM_TOKENS
        self._asked_seconds = 0.0

    def add(self, characters: int) -> None:
        """So many characters were added to the conversation."""
        self._chars += characters

    def usage(self, *, now_seconds: float, output_chars: int, fresh_tokens: int) -> Usage:
        """The usage of a response that begins now; `fresh_tokens` are billed without the cache."""
        prompt = OVERHEAD_TOKENS + int(self._chars / CHARS_PER_TOKEN)
        warm = now_seconds - self._asked_seconds <= CACHE_SECONDS
        read = self._cached_tokens if warm else SYSTEM_TOKENS
        self._cached_tokens, self._asked_seconds = prompt - fresh_tokens, now_seconds
        return Usage(
            input_tokens=fresh_tokens,
            output_tokens=max(1, int(output_chars / CHARS_PER_TOKEN)),
            cache_read_input_tokens=read,
            cache_creation_input_tokens=prompt - fresh_tokens - read,
        )
