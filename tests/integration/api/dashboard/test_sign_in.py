"""The door: who gets in, what a visit is, and what ends it."""

from __future__ import annotations

import itertools

import httpx2
import pytest
from fastapi import FastAPI

from api.dashboard import visits
from api.dashboard.visits import COOKIE, Visit
from compaction.settings import Settings, settings_from
from tests.integration.api.conftest import KEY, speaking_to
from tests.integration.api.dashboard.visitor import at_the_door, key_for, token_in, visiting, words

pytestmark = pytest.mark.anyio
_numbers = itertools.count(1)


def tenant() -> str:
    return f"door-{next(_numbers)}"


async def test_without_a_visit_every_page_leads_to_the_sign_in_and_back(app: FastAPI) -> None:
    async with at_the_door(app) as visitor:
        answer = await visitor.get("/jobs?status=failed")
        assert (answer.status_code, answer.headers["location"]) == (
            303,
            "/dashboard/sign-in?next=%2Fdashboard%2Fjobs%3Fstatus%3Dfailed",
        )
        signed_in = await visitor.sign_in(KEY, next="/dashboard/jobs?status=failed")
        assert signed_in.headers["location"] == "/dashboard/jobs?status=failed"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/dashboard",
        "//evil.example",
        "/dashboard/../..//evil.example",
        "/v1/stats",
        "/dashboard\\x",
        "/dashboardx",
    ],
)
async def test_the_sign_in_leads_nobody_elsewhere(app: FastAPI, elsewhere: str) -> None:
    async with at_the_door(app) as visitor:
        assert (await visitor.sign_in(KEY, next=elsewhere)).headers["location"] == "/dashboard"


@pytest.mark.parametrize("wrong", ["", "ck_", "ck_tooshort", KEY[:-1] + "b", "ck_\N{SNOWMAN}", "x" * 5_000])
async def test_a_wrong_key_is_refused_in_words_and_shown_nowhere(app: FastAPI, wrong: str) -> None:
    async with at_the_door(app) as visitor:
        answer = await visitor.sign_in(wrong)
        assert answer.status_code == 401
        assert "mistyped, expired or revoked" in words(answer.text)
        assert len(wrong) < 4 or wrong not in answer.text
        assert (await visitor.get("")).status_code == 303


async def test_a_key_that_neither_acts_nor_looks_has_no_use_here(app: FastAPI) -> None:
    async with at_the_door(app) as visitor:
        answer = await visitor.sign_in(await key_for(app, tenant(), "jobs:write", "sessions:write", "admin"))
        assert answer.status_code == 403
        assert "lacks the scopes ops and read" in words(answer.text)


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(app: FastAPI) -> None:
    async with at_the_door(app) as visitor:
        cookie = (await visitor.sign_in(KEY)).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/dashboard" in cookie
    assert "; secure" not in cookie  # over plain http a browser would throw it away
    assert KEY.lower() not in cookie


async def test_over_https_the_cookie_never_travels_in_the_clear(app: FastAPI) -> None:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="https://api") as http:
        form = await http.get("/dashboard/sign-in")
        answer = await http.post("/dashboard/sign-in", data={"csrf": token_in(form.text), "key": KEY})
    assert "; secure" in answer.headers["set-cookie"].lower()


async def test_a_sign_in_from_a_form_that_was_not_given_is_refused(app: FastAPI) -> None:
    """Else another site could sign its victim in with a key of its own."""
    async with speaking_to(app, None) as http:
        answer = await http.post("/dashboard/sign-in", data={"csrf": "made-up", "key": KEY})
        assert answer.status_code == 403
        await http.get("/dashboard/sign-in")
        assert (await http.post("/dashboard/sign-in", data={"csrf": "made-up", "key": KEY})).status_code == 403


async def test_a_form_of_another_site_is_refused(app: FastAPI) -> None:
    async with visiting(app) as visitor:
        headers = {"Sec-Fetch-Site": "cross-site"}
        answer = await visitor.http.post("/dashboard/sign-out", data={"csrf": visitor.csrf}, headers=headers)
        assert answer.status_code == 403
        assert (await visitor.get("")).status_code == 200


async def test_signing_out_ends_the_visit(app: FastAPI) -> None:
    async with visiting(app) as visitor:
        assert (await visitor.post("/sign-out")).status_code == 303
        assert (await visitor.get("")).status_code == 303


async def test_opening_the_sign_in_again_signs_nobody_out(app: FastAPI) -> None:
    """Else a link from anywhere would."""
    async with visiting(app) as visitor:
        assert (await visitor.get("/sign-in")).status_code == 200
        assert (await visitor.get("")).status_code == 200


async def test_a_revoked_key_ends_its_visits_at_once(app: FastAPI) -> None:
    key = await key_for(app, tenant())
    async with visiting(app, key) as visitor, speaking_to(app, key) as client:
        public_id = key.split("_")[1]
        assert (await client.delete(f"/v1/api-keys/{public_id}")).status_code == 204
        assert (await visitor.get("")).status_code == 303


@pytest.mark.parametrize("value", ["", "x", "W10.aaaa.bbbb", "." * 100])
async def test_a_made_up_cookie_is_no_visit(app: FastAPI, value: str) -> None:
    async with speaking_to(app, None) as http:
        http.cookies.set(COOKIE, value, path="/dashboard")
        assert (await http.get("/dashboard")).status_code == 303


def _signed(settings: Settings, visit: Visit) -> str:
    return visits._signer(settings, "visit").dumps([visit.public_id, visit.print, visit.looks_only, visit.csrf])


async def test_a_cookie_counts_only_with_the_services_own_secret_and_the_keys_print(
    app: FastAPI, settings: Settings
) -> None:
    """Signed by another secret, or for an older secret of the key, it opens nothing."""
    async with visiting(app) as visitor:
        good = visits._loaded(settings, "visit", visitor.http.cookies[COOKIE], 60)
    mine = Visit(*good)
    elsewhere = settings_from(
        {
            "COMPACTD_DATABASE_URL": settings.database_url,
            "COMPACTD_REDIS_URL": settings.redis_url,
            "COMPACTD_DASHBOARD_SECRET": "another",
        }
    )
    for value, status in (
        (_signed(settings, mine), 200),
        (_signed(elsewhere, mine), 303),
        (_signed(settings, Visit(mine.public_id, "0" * 16, looks_only=False, csrf="c")), 303),
        (_signed(settings, Visit("nobodys0", mine.print, looks_only=False, csrf="c")), 303),
    ):
        async with speaking_to(app, None) as http:
            http.cookies.set(COOKIE, value, path="/dashboard")
            assert (await http.get("/dashboard")).status_code == status


async def test_a_visit_lasts_a_working_day(app: FastAPI, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with visiting(app) as visitor:
        monkeypatch.setattr(visits, "VISIT_SECONDS", -1)
        assert (await visitor.get("")).status_code == 303


async def test_a_page_that_renews_itself_is_led_to_the_sign_in_as_a_whole(app: FastAPI) -> None:
    """Htmx would put the sign-in into the middle of the page."""
    async with at_the_door(app) as visitor:
        answer = await visitor.http.get("/dashboard", headers={"HX-Request": "true"})
        assert (answer.status_code, answer.headers["hx-redirect"]) == (204, "/dashboard/sign-in")


@pytest.mark.parametrize("address", ["", "/sign-in", "/nowhere", "/jobs?status=wrong", "/static/dashboard.css"])
async def test_every_answer_says_what_a_browser_may_do_with_it(app: FastAPI, address: str) -> None:
    async with visiting(app) as visitor:
        headers = (await visitor.get(address)).headers
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    stored = "immutable" in headers["cache-control"] if "static" in address else headers["cache-control"] == "no-store"
    assert stored


async def test_nothing_outside_the_static_folder_is_served(app: FastAPI) -> None:
    async with visiting(app) as visitor:
        for name in ("../pages.py", "..%2Fpages.py", "vendor/README.md", "%2Fetc%2Fpasswd", "nothing.css"):
            assert (await visitor.get(f"/static/{name}")).status_code == 404, name
