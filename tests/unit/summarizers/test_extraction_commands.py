"""Shell lines as the extractive summarizer reads them."""

from __future__ import annotations

import pytest

from compaction.summarizers.extraction import commands


@pytest.mark.parametrize("command", ["/", "//", "sudo /", "src/", "./dist/ --all", "cat a && /"])
def test_a_step_that_begins_with_a_folder_is_a_step_like_others(command: str) -> None:
    """Any history has a summary: whatever somebody typed must be readable."""
    assert commands.is_viewing(command) in {True, False}
    assert all(commands.families(command))
