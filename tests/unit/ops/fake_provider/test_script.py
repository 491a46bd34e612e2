"""Scripts: what is one, and what is not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from compaction.core import jsonbytes
from ops.fake_provider.script import Script, ScriptProblem, good_summary_text, script_from


def test_without_a_script_every_call_gets_a_good_summary() -> None:
    assert script_from(None) == Script()
    assert script_from({"steps": []}).steps == Script().steps
    assert Script().steps[0].good_summary == {}


def test_a_list_stands_for_its_steps() -> None:
    script = script_from([{"status": 529}, {"good_summary": {"include": "x"}}])
    assert [step.status for step in script.steps] == [529, 200]


BAD = [
    ("text", "script"),
    ([{}], "steps[0]"),
    ([{"txet": "x"}], "steps[0]"),
    ({"stpes": []}, "script"),
    ({"limits": [{"limit": "input_tokens"}]}, "limits[0]"),
    ({"limits": [{"limit": "pages", "reply": {"status": 400}}]}, "limits[0]"),
    ({"limits": [{"limit": "max_tokens", "reply": {"stats": 400}}]}, "limits[0].reply"),
    ({"time_divider": 0}, "script"),
]


@pytest.mark.parametrize(("value", "where"), BAD)
def test_what_is_no_script_is_refused_with_its_place(value: Any, where: str) -> None:  # noqa: ANN401 - JSON
    with pytest.raises(ScriptProblem) as caught:
        script_from(value)
    assert str(caught.value).startswith(f"{where}: ")


def test_the_good_summary_has_nine_sections_and_its_marks_in_their_places() -> None:
    text = good_summary_text({"include": "KEEP-1", "intent": "AIM-2"})
    analysis, _, summary = text.partition("</analysis>")
    assert "SCRATCH-ONLY-7731" in analysis
    assert all(f"\n{number}. " in summary for number in range(1, 10))
    assert summary.index("1. ") < summary.index("AIM-2") < summary.index("2. ")
    assert summary.index("8. ") < summary.index("KEEP-1") < summary.index("9. ")
    assert summary.removesuffix("\n</summary>").endswith("SUMMARY-END-9042")
    assert "{" not in text


def test_a_step_that_only_waits_is_silence() -> None:
    silent, slow, cut = script_from([{"delay_s": 5}, {"delay_s": 5, "text": "x"}, {"disconnect_after_chars": 2}]).steps
    assert (silent.is_silence, slow.is_silence, cut.is_silence) == (True, False, False)


CASES = Path(__file__).resolve().parents[5] / "shared" / "cases"


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here")
def test_the_script_of_every_shared_case_is_one() -> None:
    spec = importlib.util.spec_from_file_location("shared_cases", CASES / "validate.py")
    assert spec is not None
    assert spec.loader is not None
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    for path in sorted(CASES.glob("*.json")):
        case = shared.expand(jsonbytes.decode(path.read_bytes()))
        script = script_from({"steps": case["provider_script"], "limits": case.get("provider_limits", [])})
        assert len(script.steps) == len(case["provider_script"])
