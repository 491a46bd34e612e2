"""Sessions: what a PUT changes and what it leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from compaction import errors
from compaction.store import sessions
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio


async def test_a_new_session_needs_a_model(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        with pytest.raises(errors.InvalidRequest) as caught:
            await sessions.put(conn, stage.tenant_id, "new")
        assert caught.value.fields == (("model", "is required"),)
        assert await sessions.get(conn, stage.tenant_id, "new") is None


async def test_a_new_session_has_no_messages_and_the_settings_it_was_given(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        made = await sessions.put(conn, stage.tenant_id, "s", model="m", settings={"auto_compact_enabled": False})
        assert made == await sessions.get(conn, stage.tenant_id, "s")
    assert (made.name, made.model, made.query_source) == ("s", "m", None)
    assert (made.head_seq, made.boundary_seq, made.live_job_id) == (0, 0, None)
    assert made.settings == {"auto_compact_enabled": False}
    assert made.created_at.utcoffset() is not None


async def test_what_a_put_does_not_name_keeps_its_value(stage: Stage) -> None:
    name = "keeps"
    system, tools = {"system": b'"be kind"'}, {"tools": b"[]"}
    async with stage.database.begin() as conn:
        made = await sessions.put(
            conn, stage.tenant_id, name, model="m1", parameters=system | tools, settings={"a": 1}, query_source="x"
        )
        changed = await sessions.put(conn, stage.tenant_id, name, model="m2")
        assert (changed.model, changed.settings, changed.query_source) == ("m2", {"a": 1}, "x")
        assert await sessions.load_parameters(conn, made.id) == system | tools
        newer = {"tools": b'[{"name": "Read"}]'}
        changed = await sessions.put(conn, stage.tenant_id, name, settings={"b": 2}, parameters=newer)
        assert (changed.model, changed.settings, changed.query_source) == ("m2", {"b": 2}, "x")
        assert await sessions.load_parameters(conn, made.id) == system | newer


async def test_a_null_parameter_and_an_empty_query_source_are_taken_away(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        made = await sessions.put(conn, stage.tenant_id, "s", model="m", parameters={"system": b"1"}, query_source="x")
        changed = await sessions.put(conn, stage.tenant_id, "s", parameters={"system": b" null "}, query_source="")
        assert changed.query_source is None
        assert await sessions.load_parameters(conn, made.id) == {}


async def test_parameters_come_back_byte_for_byte(stage: Stage) -> None:
    tools = b'[ {"name" :"Bash", "x":1.0e2, "x":2, "nul":"\\u0000", "half":"\\ud83d"}\n]'
    async with stage.database.begin() as conn:
        made = await sessions.put(conn, stage.tenant_id, "s", model="m", parameters={"tools": tools})
        assert await sessions.load_parameters(conn, made.id) == {"tools": tools}


async def test_an_unknown_parameter_is_refused(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        with pytest.raises(errors.InvalidRequest):
            await sessions.put(conn, stage.tenant_id, "s", model="m", parameters={"colour": b"1"})


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "nul\0"},
        {"name": "half \ud83d"},
        {"name": "s", "model": "m\0"},
        {"name": "s", "query_source": "\0"},
        {"name": "s", "settings": {"deep": [{"x\0": 1}]}},
        {"name": "s", "settings": {"half": "\udfff"}},
    ],
)
async def test_text_that_postgres_cannot_carry_is_an_invalid_request(stage: Stage, fields: dict[str, Any]) -> None:
    async with stage.database.begin() as conn:
        with pytest.raises(errors.InvalidRequest):
            await sessions.put(conn, stage.tenant_id, **{"model": "m", **fields})


async def test_a_session_belongs_to_its_tenant_alone(stage: Stage) -> None:
    session = await stage.session()
    async with stage.database.begin() as conn:
        assert await sessions.get(conn, stage.tenant_id + 1_000_000, session.name) is None


async def test_puts_of_one_new_session_at_once_make_one_session(stage: Stage) -> None:
    async def put(number: int) -> int:
        async with stage.database.begin() as conn:
            parameters = {"system": b"%d" % number}
            return (await sessions.put(conn, stage.tenant_id, "shared", model="m", parameters=parameters)).id

    ids = await asyncio.gather(*map(put, range(20)))
    assert len(set(ids)) == 1


async def test_puts_at_once_that_name_different_parameters_lose_none_of_them(stage: Stage) -> None:
    session = await stage.session()

    async def put(name: str) -> None:
        async with stage.database.begin() as conn:
            await sessions.put(conn, stage.tenant_id, session.name, parameters={name: b"[1]"})

    await asyncio.gather(*map(put, sessions.PARAMETERS))
    async with stage.database.connect() as conn:
        stored = await sessions.load_parameters(conn, session.id)
    assert stored == {"system": b"[1]", "tools": b"[1]", "request": b"[1]"}
