"""Who sees and does what: operators, readers, tenants and the one who runs the service."""

from __future__ import annotations

import itertools

import httpx2
import pytest
from fastapi import FastAPI

from tests.integration.api import overseer, stage
from tests.integration.api.conftest import KEY, speaking_to
from tests.integration.api.dashboard.visitor import Visitor, key_for, visiting, words
from tests.integration.api.overseer import Overseer

pytestmark = pytest.mark.anyio
_numbers = itertools.count(1)
MARK = "max(job_tallies.at)"  # up to when everybody's jobs were counted: a time, of nobody's
CANARY = "CANARY-said-in-private"


class Owner:
    """A tenant with a failed job, a result, an open breaker and a waiting job."""

    tenant: str
    key: str
    job: str
    good: str
    bulk: str


@pytest.fixture
async def owner(app: FastAPI) -> Owner:
    made = Owner()
    made.tenant = f"owner-{next(_numbers)}"
    made.key = await key_for(app, made.tenant)
    async with speaking_to(app, made.key) as client:
        for name in ("talk", "broken"):
            await client.put(f"/v1/sessions/{name}", json={"model": "claude-haiku-4-5"})
            said = {"messages": [{"role": "user", "content": CANARY}]}
            await client.post(f"/v1/sessions/{name}/messages", json=said)
        made.good = await enqueue(client, "talk", instructions=CANARY)
        await stage.succeed(app, made.good)
        for _ in range(3):
            made.job = await enqueue(client, "broken", trigger="auto")
            await stage.fail(app, made.job)
        made.bulk = (await client.post("/v1/bulk", json={"selection": {"id_prefix": "talk"}})).json()["id"]
    return made


async def enqueue(client: httpx2.AsyncClient, session: str, **fields: str) -> str:
    answer = await client.post("/v1/compactions", json={"session_id": session} | fields)
    job_id: str = answer.json()["id"]
    return job_id


def deeds(owner: Owner) -> list[tuple[str, dict[str, str]]]:
    """Everything that changes something, as the owner's pages send it."""
    whose = {"tenant": owner.tenant, "session": "broken"}
    return [
        (f"/jobs/{owner.good}/cancel", {}),
        (f"/jobs/{owner.job}/retry", {}),
        ("/jobs/all", {"action": "retry", "confirm": "yes", "status": "failed"}),
        ("/jobs/all", {"action": "cancel", "confirm": "yes"}),
        ("/jobs/all", {"action": "reset", "confirm": "yes"}),
        ("/breakers/reset", whose),
        ("/breakers/reset-all", {"confirm": "yes"}),
        ("/providers/claude-0123/resume", {}),
    ]


def pages(owner: Owner) -> list[str]:
    """Every page that shows things of the owner's."""
    return [
        *("", "/failures", "/failures?window=30d", "/jobs", "/jobs?status=failed&code=no_summary", "/jobs?open=1"),
        *("/jobs?session=broken&trigger=auto", f"/jobs/{owner.job}", f"/jobs/{owner.good}", "/sessions"),
        *(f"/session?tenant={owner.tenant}&name=talk", f"/session?tenant={owner.tenant}&name=talk&view=full"),
        *("/sessions?name=broken", "/breakers", "/breakers?code=no_summary", "/audit", "/workers"),
        *("/jobs/all?action=retry", "/jobs/all?action=cancel", "/jobs/all?action=reset"),
        *(f"/jobs?tenant={owner.tenant}", "/bulk", f"/bulk/{owner.bulk}"),
    ]


async def state(app: FastAPI, owner: Owner) -> object:
    """What the owner has, but for the log of who looked."""
    database = stage.database_of(app)
    found = await overseer.state_of(database, await overseer.tenant_id_of(database, owner.tenant))
    del found["audit_entries"], found["api_keys"]
    return found


async def test_another_tenant_sees_nothing_and_changes_nothing(app: FastAPI, owner: Owner) -> None:
    before = await state(app, owner)
    async with visiting(app, await key_for(app, f"other-{next(_numbers)}")) as intruder:
        for address in pages(owner):
            answer = await intruder.get(address)
            assert answer.status_code in (200, 403, 404), address
            for secret in (CANARY, owner.job, owner.good, owner.bulk, "It did not work.", "so far so good"):
                assert address.count(secret) or secret not in answer.text, (address, secret)
        for address, fields in deeds(owner):
            answer = await intruder.post(address, **fields)
            assert answer.status_code < 500, address
    assert await state(app, owner) == before


async def test_what_another_tenant_owns_looks_like_what_nobody_owns(app: FastAPI, owner: Owner) -> None:
    async with visiting(app, await key_for(app, f"other-{next(_numbers)}")) as intruder:
        for theirs, nobodys in (
            (f"/jobs/{owner.job}", "/jobs/01a22e26-5941-7380-aaa5-3156a0f6644b"),
            (f"/session?tenant={owner.tenant}&name=talk", "/session?tenant=nobody&name=talk"),
            (f"/jobs?tenant={owner.tenant}", "/jobs?tenant=nobody"),
            (f"/bulk/{owner.bulk}", "/bulk/01a22e26-5941-7380-aaa5-3156a0f6644b"),
            (f"/failures?tenant={owner.tenant}", "/failures?tenant=nobody"),
        ):
            taken, free = await intruder.get(theirs), await intruder.get(nobodys)
            assert taken.status_code == free.status_code == 404
            assert words(taken.text).split("Request")[0] == words(free.text).split("Request")[0]


async def test_every_statement_of_a_tenants_visit_names_the_tenant(app: FastAPI, owner: Owner) -> None:
    database = stage.database_of(app)
    await overseer.move_apart(database)
    watch = Overseer(database)
    unwalled: set[str] = set()
    async with visiting(app, owner.key) as visitor:
        own = await overseer.ids_of(database, await overseer.tenant_id_of(database, owner.tenant))
        for address in pages(owner):
            with watch.watching():
                await visitor.get(address)
            unwalled |= {
                f"{address}: {statement.text}"
                for statement in watch.take()
                if statement.needs_a_wall and not own & statement.named() and MARK not in statement.text
            }
    assert unwalled == set()


async def test_an_operator_of_a_tenant_does_everything_there(app: FastAPI, owner: Owner) -> None:
    async with visiting(app, owner.key) as visitor:
        assert "no_summary" in await visitor.text("/failures")
        assert CANARY in await visitor.text("/session?name=talk&view=full")
        assert (await visitor.post("/breakers/reset", tenant=owner.tenant, session="broken")).status_code == 303
        assert "No breaker is open" in await visitor.text("/breakers")
        retried = await visitor.post(f"/jobs/{owner.job}/retry")
        assert retried.status_code == 303
        assert retried.headers["location"].startswith("/dashboard/jobs/")
        log = await visitor.text("/audit")
        assert "breaker.reset" in log
        assert "job.retry" in log


@pytest.mark.parametrize("look", [{}, {"look": "1"}])
async def test_who_only_looks_is_offered_nothing_and_refused_everything(
    app: FastAPI, owner: Owner, look: dict[str, str]
) -> None:
    """A key of scope read, and an operator who asked for it at the door."""
    key = owner.key if look else await key_for(app, owner.tenant, "read")
    before = await state(app, owner)
    async with visiting(app, key, **look) as reader:
        for address in pages(owner):
            html = (await reader.get(address)).text
            forms = [form for form in html.split("<form")[1:] if 'method="post"' in form and "sign-out" not in form]
            assert forms == [], address
        assert "read-only" in await reader.text("")
        for address, fields in deeds(owner):
            answer = await reader.post(address, **fields)
            assert answer.status_code == 403, address
            assert "read-only" in answer.text
    assert await state(app, owner) == before


async def test_a_deed_without_the_visits_token_is_refused(app: FastAPI, owner: Owner) -> None:
    before = await state(app, owner)
    async with visiting(app, owner.key) as visitor:
        good = visitor.csrf
        for token in ("", "made-up", good[:-1]):
            visitor.csrf = token
            for address, fields in deeds(owner):
                assert (await visitor.post(address, **fields)).status_code == 403, address
    assert await state(app, owner) == before


async def test_an_operators_key_without_read_sees_no_words(app: FastAPI, owner: Owner) -> None:
    """Sizes, names and codes, and what to do; not what was said."""
    async with visiting(app, await key_for(app, owner.tenant, "ops")) as visitor:
        for address in pages(owner):
            assert CANARY not in (await visitor.get(address)).text, address
        assert "lacks the scope read" in await visitor.text("/session?name=talk")
        assert "Summary: so far so good." not in await visitor.text(f"/jobs/{owner.good}")


async def test_the_services_operator_sees_all_tenants_and_its_reading_is_written_down(
    app: FastAPI, owner: Owner
) -> None:
    async with visiting(app, KEY) as operator:
        assert owner.tenant in await operator.text("/jobs")
        assert "No worker has reported" in await operator.text("/workers")
        assert CANARY in await operator.text(f"/session?tenant={owner.tenant}&name=talk&view=full")
        assert (await operator.post("/breakers/reset", tenant=owner.tenant, session="broken")).status_code == 303
    async with visiting(app, owner.key) as visitor:
        log = await visitor.text("/audit")
    assert "words.read session talk" in log
    assert "breaker.reset broken" in log
    assert "default" in log


async def test_a_page_that_renews_itself_is_one_line_of_the_log_per_visit(app: FastAPI, owner: Owner) -> None:
    """Whatever headers ask; another target, another visit are lines of their own."""
    renewal = {"HX-Request": "true"}
    for _ in range(2):
        async with visiting(app, KEY) as operator:
            for headers in (renewal, {}, renewal, renewal):
                answer = await operator.http.get(f"/dashboard/jobs/{owner.good}", headers=headers)
                assert answer.status_code == 200
            await operator.text(f"/session?tenant={owner.tenant}&name=talk")
            await operator.text(f"/session?tenant={owner.tenant}&name=talk&view=full")
    async with visiting(app, owner.key) as visitor:
        await visitor.text(f"/jobs/{owner.good}")
        log = await visitor.text("/audit")
    assert log.count(f"words.read job {owner.good}") == 2
    assert log.count("words.read session talk") == 2


async def test_a_tenant_sees_its_bulk_runs_and_how_far_they_have_come(app: FastAPI, owner: Owner) -> None:
    async with visiting(app, owner.key) as visitor:
        listed = await visitor.get("/bulk")
        assert f"/dashboard/bulk/{owner.bulk}" in listed.text
        assert "planning" in words(listed.text)
        assert "0 / 0 sessions" in await visitor.text(f"/bulk/{owner.bulk}")


async def test_tenants_do_not_see_workers_and_providers(app: FastAPI, owner: Owner) -> None:
    async with visiting(app, owner.key) as visitor:
        answer = await visitor.get("/workers")
        assert answer.status_code == 403
        assert "all tenants" in words(answer.text)
        assert "Workers" not in await visitor.text("")


async def test_a_key_of_the_operators_tenant_without_ops_stays_behind_its_wall(app: FastAPI, owner: Owner) -> None:
    async with visiting(app, await key_for(app, "default", "read")) as reader:
        await _sees_nothing_of(reader, owner)


async def _sees_nothing_of(visitor: Visitor, owner: Owner) -> None:
    assert (await visitor.get(f"/jobs/{owner.job}")).status_code == 404
    assert owner.tenant not in await visitor.text("/jobs")
