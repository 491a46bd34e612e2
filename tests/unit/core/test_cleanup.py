from __future__ import annotations

import pytest

from compaction.core import cleanup

BEFORE = ["file_state", "loaded_memory_paths"]
AFTER = [  # DESIGN §3, in its order
    "micro_compaction",
    "context_collapse",
    "memory_files",
    "system_prompt_sections",
    "classifier_approvals",
    "speculative_checks",
    "beta_tracking",
    "session_messages",
]


def test_the_agents_own_conversation_forgets_everything_in_the_order_of_the_design() -> None:
    assert cleanup.names(cleanup.steps_for(None, "fresh")) == BEFORE + AFTER
    assert cleanup.names(cleanup.steps_for(None, "fresh", phase="before_attachments")) == BEFORE
    assert cleanup.names(cleanup.steps_for(None, "fresh", phase="after_commit")) == AFTER


@pytest.mark.parametrize(
    "source", ["agent:explore", "Agent:builtin", "subagent", "sub-agent:7", "sub_agent", "sidechain"]
)
def test_a_sub_agent_leaves_what_it_shares_with_the_conversation_that_started_it(source: str) -> None:
    names = cleanup.names(cleanup.steps_for(source, "session_memory"))
    assert names == [name for name in BEFORE + AFTER if name not in {"context_collapse", "memory_files"}]


@pytest.mark.parametrize("source", [None, "main", "repl_main_thread", "sdk", "agent", "coding_agent", "agents:main"])
def test_other_sources_are_the_main_thread(source: str | None) -> None:
    assert cleanup.is_main_thread(source)


def test_micro_compaction_alone_forgets_nothing_not_even_its_own_state() -> None:
    assert cleanup.steps_for(None, "microcompact") == ()


def test_each_step_forgets_the_entry_of_its_name() -> None:
    steps = cleanup.steps_for("agent:explore", "fresh", phase="before_attachments")
    assert cleanup.entries(steps) == (("runtime", "file_state"), ("runtime", "loaded_memory_paths"))


def test_no_step_forgets_which_skills_were_announced() -> None:
    steps = cleanup.steps_for(None, "fresh")
    assert cleanup.KEPT == ("sent_skill_names",)
    assert not any(cleanup.forgets("runtime", name, steps) for name in cleanup.KEPT)


def test_names_of_steps_are_unique() -> None:
    assert len({step.name for step in cleanup.STEPS}) == len(cleanup.STEPS)


def test_an_entry_goes_with_what_lies_below_it_and_with_nothing_else() -> None:
    steps = cleanup.steps_for(None, "fresh", phase="before_attachments")
    assert cleanup.forgets("runtime", "file_state", steps)
    assert cleanup.forgets("runtime", "file_state/src/app.py", steps)
    assert not cleanup.forgets("runtime", "file_state_of_another", steps)
    assert not cleanup.forgets("files", "file_state", steps)
    assert not cleanup.forgets("runtime", "micro_compaction", steps)
