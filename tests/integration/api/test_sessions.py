from __future__ import annotations

import httpx2
import pytest

pytestmark = pytest.mark.anyio


async def test_a_session_is_created_changed_and_read(client: httpx2.AsyncClient) -> None:
    created = await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5", "system": "Be brief."})
    assert created.status_code == 201, created.text
    changed = await client.put("/v1/sessions/s1", json={"settings": {"auto_compact_enabled": False}})
    assert changed.status_code == 200
    read = (await client.get("/v1/sessions/s1")).json()
    assert read["model"] == "claude-haiku-4-5"
    assert read["settings"] == {"auto_compact_enabled": False}
    assert read["head_seq"] == 0
    assert read["state"]["marks"]["auto_compact"] == 167_000
    assert read["breaker"]["state"] == "closed"
