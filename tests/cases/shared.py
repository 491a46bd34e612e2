"""The shared cases: where they lie, and their own validator, which expands and judges them.

A case is one JSON file about one way in which compaction is known to have failed. The folder is `../shared/cases`
beside the repository, or the one that COMPACTD_TEST_CASES names; without it these tests skip and say so.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("COMPACTD_TEST_CASES", ROOT.parent / "shared" / "cases"))
VALIDATOR = FOLDER / "validate.py"
ABSENT = f"no cases at {FOLDER}; COMPACTD_TEST_CASES names another folder"
IS_HERE = FOLDER.is_dir()

Json = Any


@cache
def validator() -> Any:  # noqa: ANN401 - a module without types, loaded by its path
    """The module with `load`, `expand`, `judge`, `check_post` and `check_request`.

    A folder of further cases need not bring its own: that of the usual folder judges them too.
    """
    path = VALIDATOR if VALIDATOR.exists() else ROOT.parent / "shared" / "cases" / "validate.py"
    spec = importlib.util.spec_from_file_location("shared_cases_validator", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case_names() -> list[str]:
    """The ids of all cases, sorted; [] when there is no folder."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def case(name: str) -> Json:
    """One case with everything spelled out."""
    return validator().expand(validator().load(FOLDER / f"{name}.json"))
