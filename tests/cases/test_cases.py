"""Every shared case through the running service, judged by the cases' own validator."""

from __future__ import annotations

import json

import pytest

from tests.cases import shared
from tests.cases.observe import observe, timeline
from tests.cases.play import Play
from tests.integration.service import Service

pytestmark = pytest.mark.skipif(not shared.IS_HERE, reason=shared.ABSENT)


@pytest.mark.parametrize("name", shared.case_names() or ["none"])
def test_the_service_behaves_as_the_case_expects(service: Service, name: str) -> None:
    play = Play(service, shared.case(name), name)
    play.run()
    unmet = shared.validator().judge(play.case, observe(play))
    assert not unmet, "\n".join([f"{name}: {play.case['why']}", *unmet, *_story(play)])


def _story(play: Play) -> list[str]:
    """What happened, for whoever looks for the cause."""
    jobs = [json.dumps({key: job.get(key) for key in ("status", "reason", "error", "attempt")}) for job in play.jobs]
    events = [f"{event['type']} {json.dumps(event['data'])}" for event in timeline(play)]
    calls = [json.dumps({"bytes": call.body_bytes, **call.facts}) for call in play.service.calls]
    return ["-- jobs", *jobs, "-- events", *events, "-- calls", *calls]
