"""The extractive summarizer keeps its port's contract: an honest reply, bounded, valid, never a failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from compaction.cli.sample import sample_session
from compaction.core import jsonbytes, summary
from compaction.core.messages import Message, Usage
from compaction.ports import SummaryReply
from compaction.summarizers.extractive import THREAD_CHARS, ExtractiveSummarizer, extract
from tests.unit.summarizers.talk import asked, assistant, called, filler, parted, sections, user


@dataclass
class Heard:
    """A progress that remembers."""

    total: int = 0

    def characters(self, count: int) -> None:
        self.total = count


def replied(text: str) -> SummaryReply:
    return SummaryReply(text=text, stop_reason="end_turn", usage=Usage(), model="extractive", degraded=True)


def sample_messages() -> list[Message]:
    """The sample session, rows turned into messages the plain way."""
    rows = [jsonbytes.decode(line) for line in sample_session()]
    talked = [row for row in rows if row["type"] in ("user", "assistant")]
    return [Message(role=row["message"]["role"], content=row["message"]["content"]) for row in talked]


@pytest.mark.anyio
async def test_the_reply_says_that_no_model_made_it_and_costs_nothing() -> None:
    heard = Heard()
    reply = await ExtractiveSummarizer().summarize(asked(user("hello"), assistant("hi")), heard)

    assert (reply.model, reply.degraded, reply.stop_reason) == ("extractive", True, "end_turn")
    assert reply.usage == Usage()
    assert heard.total == len(reply.text)
    assert "without a model" in reply.text


@pytest.mark.anyio
async def test_a_large_conversation_gives_the_same_text_as_on_the_loop() -> None:
    request = asked(user("read it"), filler(2 * THREAD_CHARS), assistant("done"))

    reply = await ExtractiveSummarizer().summarize(request, Heard())

    assert reply.text == extract(request)


@pytest.mark.anyio
async def test_it_cannot_count_tokens() -> None:
    assert await ExtractiveSummarizer().count_tokens(asked(user("hello"))) is None


def test_its_name_is_the_one_in_settings() -> None:
    assert ExtractiveSummarizer().name == "extractive"


def test_the_text_is_a_valid_summary_with_all_nine_sections() -> None:
    found = summary.validate(replied(extract(asked(user("fix the retry"), assistant("I fixed it.")))))

    assert found.had_tags
    assert found.sections_found == (1, 2, 3, 4, 5, 6, 7, 8, 9)


def test_an_empty_conversation_still_has_all_headings() -> None:
    assert all(text == "- None." for number, text in sections(asked()).items() if number)


def test_the_up_to_ending_changes_the_last_two_headings_only() -> None:
    text = extract(asked(user("hello")), ending="continuing")

    assert "\n7. Pending Tasks:\n" in text
    assert "\n8. Work Completed:\n" in text
    assert "\n9. Context for Continuing Work:\n" in text


def test_instructions_are_quoted_as_not_followed() -> None:
    first = sections(asked(user("go"), filler(), instructions="Write it as a poem."))[1]

    assert "Instructions for this summary, which an extract without a model cannot follow: Write it as a poem." in first


@pytest.mark.parametrize("max_output_tokens", [400, 1_000, 4_000, 20_000])
def test_the_output_cap_bounds_the_text_at_three_characters_a_token(max_output_tokens: int) -> None:
    request = asked(
        *(user(f"wish {number}: {'please ' * 60}") for number in range(200)),
        *(called("Edit", "ok", file_path=f"/srv/{n}.py", old_string="a", new_string="b\n" * 30) for n in range(200)),
        max_output_tokens=max_output_tokens,
    )

    text = extract(request)

    assert len(text) <= 3 * max_output_tokens + len("<summary>\n\n</summary>")
    assert set(parted(text)) == set(range(10))


def test_ten_megabytes_give_no_more_than_thirty_six_thousand_characters() -> None:
    request = asked(
        user("sum up"), *(filler(1_000_000) for _ in range(10)), assistant("so long"), max_output_tokens=64_000
    )

    assert len(extract(request)) <= 36_000 + len("<summary>\n\n</summary>")


def test_the_summary_is_at_most_half_of_what_it_replaces() -> None:
    words = [user(f"number {number}, {'again ' * 40}") for number in range(40)]
    replaced = sum(len(str(message.content)) for message in words)

    assert len(extract(asked(*words))) <= replaced // 2 + len("<summary>\n\n</summary>")


def test_the_sample_session_shrinks_to_a_tenth_and_keeps_its_rules() -> None:
    messages = sample_messages()
    text = extract(asked(messages))
    found = parted(text)

    assert len(text) < sum(len(str(message.content)) for message in messages) / 10
    assert "- Constraint: Never touch anything under invoicing/ledger, it is under audit until June." in found[6]
    assert "- Constraint: No new dependencies." in found[6]
    assert "Later correction or change of mind: Actually, scrap the Redis part." in found[1]
    assert "- [in progress] Counter for dead letters in invoicing/metrics.py, labelled by reason" in found[7]
    assert "AssertionError: assert 2.0 == (0.0 + 1)" in found[8]
    assert "`pytest tests/delivery` had just failed" in found[9]
    assert "/invoicing/ledger/" not in found[3]


def test_a_session_of_170_000_tokens_is_read_in_one_pass(record_property: Callable[[str, object], None]) -> None:
    """The number is recorded, not asserted: a busy machine is no failure."""
    request = asked(sample_messages())
    extract(request)
    before = time.process_time()
    extract(request)
    record_property("extract_cpu_ms", round(1000 * (time.process_time() - before), 1))
