"""Memory documents: templates that say nothing, and documents over their budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import excerpt, memory_text, tokens

TEMPLATE = """# Session title
_A short name for this session_

# Current state
*What is being worked on right now, and what comes next*

## Errors
- [none yet]
- TODO
<!-- fill this in
     as you go -->
---
| | |
(empty)
N/A
"""


@pytest.mark.parametrize(
    "memory", ["", "  \n\t", TEMPLATE, "# Title", "# Title\nShort.", "<!-- all of it a comment -->"]
)
def test_a_template_is_no_memory(memory: str) -> None:
    assert memory_text.is_empty(memory)


@pytest.mark.parametrize(
    "memory",
    [
        f"{TEMPLATE}\nThe parser is ported to the new reader.",
        "The parser is ported to the new reader.",
        "# State\n- [x] port the parser (done)\n",
        "# State\n**Next:** port the reader of *logs*",
        "检查日志然后修改配置文件重新运行测试确认结果",
    ],
)
def test_a_document_with_a_sentence_is(memory: str) -> None:
    assert not memory_text.is_empty(memory)


def test_comments_that_are_not_closed_hide_nothing() -> None:
    assert not memory_text.is_empty("<!-- a -->The parser is <!-- ported to the new reader")


def test_a_document_within_its_budget_is_kept_whole() -> None:
    assert memory_text.within("\n# State\nAll is well.\n\n", 100) == "# State\nAll is well."


def test_the_longest_sections_give_way_first() -> None:
    """Two short sections stay whole, the long one loses its end, visibly and at the end of a line."""
    long = "\n".join(f"step {number} done" for number in range(400))
    cut = memory_text.within(f"# Title\nPort the parser.\n# Log\n{long}\n# Next\nThe reader of logs.\n", 300)
    assert cut.startswith("# Title\nPort the parser.\n# Log\nstep 0 done\n")
    assert cut.endswith("\n# Next\nThe reader of logs.")
    assert " characters left out …]\n# Next" in cut
    assert tokens.estimate_text(cut) <= 300


def test_a_document_without_headings_loses_its_end() -> None:
    cut = memory_text.within("All is well. " * 1_000, 200)
    assert cut.startswith("All is well. All")
    assert cut.endswith(" characters left out …]")


def test_more_sections_than_the_budget_has_room_for() -> None:
    cut = memory_text.within("".join(f"# Section {number}\nText.\n" for number in range(500)), 100)
    assert tokens.estimate_text(cut) <= 100


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["", "# A\n", "## B\n"]), st.text(max_size=300)), max_size=12),
    st.integers(excerpt.MARK_TOKENS, 400),
)
def test_every_document_fits_its_budget(parts: list[tuple[str, str]], budget: int) -> None:
    document = "\n".join(f"{heading}{text}" for heading, text in parts)
    assert tokens.estimate_text(memory_text.within(document, budget)) <= budget
