"""An agent's history in its loop, against the running service: nothing is lost, every list is valid, nobody waits."""

from __future__ import annotations

import json

import pytest

from compaction.client import AgentHistory, Client, ContextFull, Unreachable
from tests.integration.client.agent import SMALL_WINDOW, Agent
from tests.integration.service import KEY, Service

pytestmark = pytest.mark.anyio

BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}


def an_agent(client: Client, name: str, seed: int = 0, *, full_seconds: float = 30.0) -> Agent:
    history = AgentHistory(
        client, name, model="claude-haiku-4-5", settings=SMALL_WINDOW, patience_seconds=60, full_seconds=full_seconds
    )
    return Agent(history, seed)


def stored(service: Service, session: str) -> str:
    """Everything that was ever stored of a session."""
    return json.dumps(service.view(session, "full"))


def in_order(text: str, marks: list[str]) -> bool:
    """Whether all marks stand in the text, one behind the other."""
    places = [text.find(mark) for mark in marks]
    return -1 not in places and places == sorted(places)


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_said_while_a_job_runs_is_never_lost(service: Service, client: Client, seed: int) -> None:
    """Whenever the summary comes, the list is valid, holds all that came after, and the store holds everything."""
    service.play({"steps": [{"good_summary": {}}], "hold_calls": list(range(1, 50))})
    agent = an_agent(client, f"agent-{seed}", seed)
    swaps = 0
    for number in range(90):
        before = agent.messages
        await agent.step()
        swaps += agent.given[-1][: len(before) - 1] != before[:-1] and number > 0
        if number % 3 == 2:
            service.fake.release()
    assert swaps >= 2
    await agent.sent()
    assert in_order(stored(service, agent.history.session_id), agent.said)
    assert agent.history.session_id == f"agent-{seed}"
    assert agent.history.last_result is not None
    assert agent.history.trouble is None


async def test_a_loop_goes_on_while_the_model_summarises(service: Service, client: Client) -> None:
    """The summary is held back: the loop gets its own list meanwhile, and the smaller one when it came."""
    service.play({"steps": [{"good_summary": {}}], "hold_calls": [1]})
    agent = an_agent(client, "held")
    while not service.calls:
        await agent.step()
        assert len(agent.messages) < 300
    summarised = len(agent.said)
    for _ in range(3):
        await agent.step()
    own = list(agent.messages)
    assert await agent.sent() == own
    service.fake.release()
    service.until(lambda: service.http.get("/v1/compactions?session_id=held").json()["data"][0]["done"], "no end")
    smaller = await agent.sent()
    assert len(json.dumps(smaller)) < len(json.dumps(own)) / 2
    assert in_order(json.dumps(smaller), agent.said[summarised:])


async def test_a_full_history_waits_for_the_summary(service: Service, client: Client) -> None:
    agent = an_agent(client, "full")
    agent.messages = [
        {"role": "user", "content": f"part {number}: " + "words and words " * 500} for number in range(25)
    ]
    agent.messages = [
        one if place % 2 == 0 else {"role": "assistant", "content": one["content"]}
        for place, one in enumerate(agent.messages)
    ]
    before = len(json.dumps(agent.messages))
    assert len(json.dumps(await agent.sent())) < before / 2


async def test_a_full_history_that_cannot_be_compacted_is_told(service: Service, client: Client) -> None:
    service.play([BROKEN])
    agent = an_agent(client, "hopeless")
    for number in range(13):
        agent.messages.append({"role": "user", "content": f"part {number}: " + "words and words " * 500})
        agent.messages.append({"role": "assistant", "content": f"yes {number} " + "words and words " * 500})
    agent.messages.append({"role": "user", "content": "And now?"})
    with pytest.raises(ContextFull) as caught:
        await agent.sent()
    assert (caught.value.session_id, caught.value.reason) == ("hopeless", "api_error")


async def test_a_list_that_was_rewound_goes_on_in_a_session_of_its_own(service: Service, client: Client) -> None:
    agent = an_agent(client, "rewound")
    for _ in range(4):
        await agent.step()
    agent.messages = [agent.messages[0], {"role": "user", "content": "No, otherwise."}]
    assert await agent.sent() == agent.messages
    branch = agent.history.session_id
    assert branch.startswith("rewound.")
    assert "No, otherwise." in stored(service, branch)
    assert in_order(stored(service, "rewound"), agent.said[:3])


async def test_an_edit_by_somebody_else_makes_a_result_stale_and_the_loop_keeps_its_list(
    service: Service, client: Client
) -> None:
    service.play({"steps": [{"good_summary": {}}], "hold_calls": [1]})
    agent = an_agent(client, "shared")
    await agent.step()
    service.append("shared", [{"uuid": "foreign", "role": "user", "content": "I am somebody else."}])
    while not service.calls:
        await agent.step()
    service.fake.release()
    service.until(lambda: service.http.get("/v1/compactions?session_id=shared").json()["data"][0]["done"], "no end")
    own = list(agent.messages)
    assert await agent.sent() == own
    assert agent.history.session_id.startswith("shared.")
    assert in_order(stored(service, agent.history.session_id), agent.said)


async def test_marks_of_the_cache_may_move_about(service: Service, client: Client) -> None:
    agent = an_agent(client, "marked")
    await agent.step()
    for message in agent.messages:
        if isinstance(message["content"], list):
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    await agent.sent()
    assert agent.history.session_id == "marked"
    assert "cache_control" not in stored(service, "marked")


async def test_a_process_that_starts_anew_finds_its_session_again(service: Service, client: Client) -> None:
    agent = an_agent(client, "again")
    for _ in range(3):
        await agent.step()
    await agent.sent()
    later = an_agent(client, "again")
    later.messages = [*agent.messages]
    assert await later.sent() == agent.messages
    assert later.history.session_id == "again"
    assert len(service.view("again", "full")) == len(agent.messages)
    loaded = an_agent(client, "again")
    loaded.messages = await loaded.history.load()
    assert in_order(json.dumps(loaded.messages), agent.said)
    await loaded.sent()
    assert loaded.history.session_id == "again"


async def test_a_result_that_came_while_nobody_looked_is_taken_over_by_the_next_process(
    service: Service, client: Client
) -> None:
    agent = an_agent(client, "died")
    while len(agent.said) < 20:
        await agent.step()
    await agent.sent()
    raw = list(agent.messages)
    assert service.compact("died")["was_compacted"]
    later = an_agent(client, "died")
    later.messages = [*raw, {"role": "assistant", "content": "MARK-LATER"}, {"role": "user", "content": "Well?"}]
    smaller = json.dumps(await later.sent())
    assert later.history.session_id == "died"
    assert len(smaller) < len(json.dumps(raw)) / 2
    assert "MARK-LATER" in smaller
    assert stored(service, "died").count("MARK-LATER") == 1


async def test_while_the_cache_is_warm_the_api_clears_old_results_and_the_list_stays(
    service: Service, client: Client
) -> None:
    """Many small results: the job's outcome is a field for the next requests, and no message changes."""
    agent = an_agent(client, "warm")
    messages: list[dict[str, object]] = [{"role": "user", "content": "Read them all."}]
    while agent.history.context_management is None:
        number = len(messages)
        assert number < 200
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"{number}.py"}}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"part {number} " + "of a file " * 250}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        assert await agent.history.keep(messages) == messages
    assert agent.history.context_management["edits"][0]["type"] == "clear_tool_uses_20250919"
    assert agent.history.request_options["extra_body"] == {"context_management": agent.history.context_management}
    assert not service.calls  # no model was asked
    assert agent.history.session_id == "warm"


async def test_without_the_service_the_loop_goes_on_and_what_was_said_is_stored_later(service: Service) -> None:
    async with (
        Client("http://127.0.0.1:1", KEY, max_tries=1) as nobody,
        Client(str(service.http.base_url), KEY) as real,
    ):
        agent = an_agent(nobody, "alone")
        await agent.step()
        own = list(agent.messages)
        assert await agent.sent() == own
        assert isinstance(agent.history.trouble, Unreachable)
        agent.history._client = real
        await agent.sent()
    assert in_order(stored(service, "alone"), agent.said)
