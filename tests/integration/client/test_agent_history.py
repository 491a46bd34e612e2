"""An agent's history in its loop, against the running service: nothing is lost, every list is valid, nobody waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from compaction.client import AgentHistory, Client, ContextFull, Unreachable
from compaction.client.agent_history import AskAt
from tests.integration.client.agent import SMALL_WINDOW, Agent
from tests.integration.client.wire import Cut, Wire
from tests.integration.service import KEY, Service

pytestmark = pytest.mark.anyio

BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
async def cut_client(service: Service, wire: Wire) -> AsyncIterator[Client]:
    """A client that tries each call once, over a wire that the test can cut."""
    async with Client(str(service.http.base_url), KEY, max_tries=1, transport=wire) as speaking:
        yield speaking


def an_agent(client: Client, name: str, seed: int = 0, *, full_seconds: float = 30.0, ask_at: AskAt = "auto") -> Agent:
    history = AgentHistory(
        client,
        name,
        model="claude-haiku-4-5",
        settings=SMALL_WINDOW,
        patience_seconds=60,
        full_seconds=full_seconds,
        ask_at=ask_at,
    )
    return Agent(history, seed)


def stored(service: Service, session: str) -> str:
    """Everything that was ever stored of a session."""
    return json.dumps(service.view(session, "full"))


def in_order(text: str, marks: list[str]) -> bool:
    """Whether all marks stand in the text, one behind the other."""
    places = [text.find(mark) for mark in marks]
    return -1 not in places and places == sorted(places)


async def let_go(service: Service) -> None:
    """Lets the model answer now and then, whatever the agent waits for."""
    while True:
        await asyncio.sleep(1)
        service.fake.release()


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_said_while_a_job_runs_is_never_lost(service: Service, client: Client, seed: int) -> None:
    """Whenever the summary comes, the list is valid, holds all that came after, and the store holds everything."""
    service.play({"steps": [{"good_summary": {}}], "hold_calls": list(range(1, 50))})
    agent = an_agent(client, f"agent-{seed}", seed)
    swaps = 0
    letting_go = asyncio.create_task(let_go(service))  # a full history waits within its step
    for number in range(90):
        before = agent.messages
        await agent.step()
        swaps += agent.given[-1][: len(before) - 1] != before[:-1] and number > 0
        if number % 3 == 2:
            service.fake.release()
    letting_go.cancel()
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


async def test_without_the_service_the_loop_goes_on_and_what_was_said_is_stored_later(
    service: Service, wire: Wire, cut_client: Client
) -> None:
    agent = an_agent(cut_client, "alone")
    wire.is_away = True
    await agent.step()
    own = list(agent.messages)
    assert await agent.sent() == own
    assert isinstance(agent.history.trouble, Unreachable)
    wire.is_away = False
    await agent.sent()
    assert in_order(stored(service, "alone"), agent.said)


@pytest.mark.parametrize("lost", ["/foreign-GET/messages", "/foreign-PUT"])
async def test_no_session_of_somebody_else_is_written_to_after_an_answer_that_was_lost(
    service: Service, wire: Wire, cut_client: Client, lost: str
) -> None:
    """What the session holds could not be looked at: the next call looks again before it stores anything."""
    name = lost.split("/")[1]
    service.put_session(name, [{"role": "user", "content": "I am somebody else."}])
    wire.cuts = [Cut(name[-3:], lost, done=True)]
    agent = an_agent(cut_client, name)
    agent.messages = [{"role": "user", "content": "MARK-MINE"}]
    assert await agent.sent() == agent.messages
    assert isinstance(agent.history.trouble, Unreachable)
    await agent.sent()
    assert agent.history.session_id.startswith(f"{name}.")
    assert "MARK-MINE" in stored(service, agent.history.session_id)
    assert [one["content"] for one in service.view(name, "full")] == ["I am somebody else."]


async def test_words_that_were_changed_after_a_lost_answer_leave_the_session_that_may_hold_them(
    service: Service, wire: Wire, cut_client: Client
) -> None:
    """The append arrived and its answer did not: what it stored is no longer what the list says."""
    agent = an_agent(cut_client, "changed")
    agent.messages = [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]
    await agent.sent()
    own = list(agent.messages)
    wire.cuts = [Cut("POST", "/changed/messages", done=True)]
    agent.messages = [*own, {"role": "user", "content": "MARK-WRONG"}]
    await agent.sent()
    assert isinstance(agent.history.trouble, Unreachable)
    agent.messages = [*own, {"role": "user", "content": "MARK-RIGHT"}]
    await agent.sent()
    assert agent.history.session_id.startswith("changed.")
    assert [one["content"] for one in service.view(agent.history.session_id, "full")] == ["One.", "Two.", "MARK-RIGHT"]


async def test_a_new_session_that_somebody_wrote_to_is_left_too(service: Service, client: Client) -> None:
    """Two lists begin alike and were rewound to the same place: the second one does not go on in the first one's."""
    first, second = an_agent(client, "twice"), an_agent(client, "twice")
    first.messages = [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]
    await first.history.keep(first.messages)
    rewound = [{"role": "user", "content": "Otherwise."}]
    await first.history.keep(rewound)
    await first.history.keep([*rewound, {"role": "assistant", "content": "MARK-FIRST"}])
    await second.history.keep(rewound)
    assert second.history.session_id.startswith("twice.")
    assert second.history.session_id != first.history.session_id
    assert "MARK-FIRST" not in stored(service, second.history.session_id)


@pytest.mark.parametrize("done", [True, False])
async def test_a_request_whose_answer_was_lost_makes_one_job_and_its_result_is_taken(
    service: Service, wire: Wire, cut_client: Client, done: bool
) -> None:
    """Whether the API got it or not, the loop finds the job in its later calls, and no second one is paid for."""
    name = f"lost-answer-{done}"
    agent = an_agent(cut_client, name, ask_at="warning")  # with a manual job, which writes a summary in any case
    wire.cuts = [Cut("POST", "/v1/compactions", done=done)]
    while wire.cuts:
        await agent.step()
        assert len(agent.messages) < 300
    assert isinstance(agent.history.trouble, Unreachable)
    if done:
        service.until(lambda: service.view(name, "live")[0]["role"] == "system", "the lost job did not end")
    asked = len(json.dumps(agent.messages))
    while agent.history.last_result is None:
        await agent.sent()
    assert len(json.dumps(agent.messages)) < asked / 2
    jobs = service.http.get("/v1/compactions", params={"session_id": name}).json()["data"]
    assert [job["status"] for job in jobs] == ["succeeded"]
    assert agent.history.last_result["job_id"] == jobs[0]["id"]
    assert agent.history.session_id == name


async def test_a_compaction_that_somebody_else_asked_for_is_taken_too(service: Service, client: Client) -> None:
    agent = an_agent(client, "operated")
    while len(json.dumps(agent.messages)) < 20_000:  # well below the mark of automatic compaction
        await agent.step()
    await agent.sent()
    job = service.compact("operated")
    assert job["was_compacted"]
    while agent.history.last_result is None:
        await agent.step()
        assert len(agent.messages) < 300
    assert agent.history.last_result["job_id"] == job["id"]
    assert agent.history.session_id == "operated"


async def test_a_question_that_waits_for_its_answer_stays_word_for_word(service: Service, client: Client) -> None:
    """Nothing more fits, so the compaction covers the question too; the model must see it and not only a summary."""
    agent = an_agent(client, "question")
    for number in range(13):
        agent.messages.append({"role": "user", "content": f"part {number}: " + "words and words " * 500})
        agent.messages.append({"role": "assistant", "content": f"yes {number} " + "words and words " * 500})
    question = {"role": "user", "content": "Which port does MARK-PORT listen on?"}
    agent.messages.append(question)
    smaller = list(await agent.sent())
    assert agent.history.last_result is not None
    assert smaller[-1] == question
    loaded = an_agent(client, "question").history
    assert (await loaded.load())[-1]["content"][-1]["text"] == question["content"]
    agent.messages.append({"role": "assistant", "content": "On 4711."})
    await agent.history.keep(agent.messages)
    assert agent.history.session_id == "question"
    assert json.dumps(service.view("question", "live")).count("MARK-PORT") == 1


async def test_a_question_that_came_while_a_job_waited_stays_word_for_word(service: Service, client: Client) -> None:
    """Nobody takes the job at first; when somebody does, its snapshot covers the question that came meanwhile."""
    service.kill_workers()
    try:
        agent = an_agent(client, "late", ask_at="warning")  # with a manual job, which writes a summary in any case
        while not service.http.get("/v1/compactions?session_id=late").json()["data"]:
            await agent.step()
            assert len(agent.messages) < 300
        question = {"role": "user", "content": "What of MARK-LATE?"}
        agent.messages += [{"role": "assistant", "content": "Well."}, question]
        await agent.sent()
    finally:
        service.start_worker()
    service.until(lambda: service.http.get("/v1/compactions?session_id=late").json()["data"][0]["done"], "no end")
    await agent.sent()
    assert agent.history.last_result is not None
    assert agent.messages[-1] == question
    assert agent.history.session_id == "late"
