"""Ids of calls: valid, and each used once."""

from __future__ import annotations

from compaction.core.fields import SERVER_ID, TOOL_ID
from compaction.core.tool_ids import ToolIds


def test_the_first_call_with_a_valid_id_keeps_it() -> None:
    ids = ToolIds(["a", "a"])
    assert [ids.claim("a"), ids.claim("a"), ids.claim("a")] == ["a", "a_2", "a_3"]


def test_a_new_id_is_none_that_another_call_of_the_history_has() -> None:
    ids = ToolIds(["a", "a", "a_2"])
    assert [ids.claim("a"), ids.claim("a"), ids.claim("a_2")] == ["a", "a_3", "a_2"]


def test_an_invalid_id_is_replaced_by_a_valid_one() -> None:
    ids = ToolIds(())
    given = [ids.claim(stored) for stored in ("functions.Bash:0", "functions_Bash_0", "", "检查", "")]
    assert given == ["functions_Bash_0_2", "functions_Bash_0", "_2", "___2", "_3"]
    assert all(TOOL_ID.fullmatch(ident) for ident in given)


def test_server_calls_have_a_pattern_of_their_own() -> None:
    ids = ToolIds(())
    given = [ids.claim(stored, server=True) for stored in ("srvtoolu_1", "srvtoolu_1", "srvtoolu-x", "toolu_1", "")]
    assert given == ["srvtoolu_1", "srvtoolu_1_2", "srvtoolu_srvtoolu_x_2", "srvtoolu_toolu_1_2", "srvtoolu__2"]
    assert all(SERVER_ID.fullmatch(ident) for ident in given)


def test_ten_thousand_equal_ids_cost_one_step_each() -> None:
    ids = ToolIds(["call_0"] * 10_000)
    assert len({ids.claim("call_0") for _ in range(10_000)}) == 10_000
