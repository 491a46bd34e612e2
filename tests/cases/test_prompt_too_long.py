"""Every line of the shared table of providers' refusals, read by the overflow classifier."""

from __future__ import annotations

import json

import pytest

from compaction.summarizers.overflow import classify
from tests.cases import shared
from tests.cases.shared import Json

TABLE = shared.FOLDER / "prompt_too_long.jsonl"
LINES = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()] if TABLE.exists() else []


@pytest.mark.skipif(not LINES, reason=f"no {TABLE.name}: {shared.ABSENT}")
@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line["id"]))
def test_every_refusal_is_read_as_the_table_expects(line: Json) -> None:
    as_text = line["where"] == "error_text"
    verdict = classify(line["status"], None if as_text else line["body"], line["body"] if as_text else None)
    seen = {
        "class": verdict.category,
        "is_overflow": verdict.category == "tokens",
        "gap": verdict.gap,
        "lower_bound": verdict.lower_bound,
        "output_first": verdict.output_first,
    }
    assert seen == line["expect"]
