from __future__ import annotations

import json

from compaction.core.addresses import AddressRules
from compaction.core.hooks import Endpoint
from compaction.hooks.guarded import GuardedCaller
from compaction.hooks.http import HttpHook, request_body
from compaction.ports import HookContext

CONTEXT = HookContext(
    tenant="agents", session_id="s1", job_id="j1", trigger="bulk", instructions="the customer's words", pre_tokens=7
)


def test_a_hook_is_told_ids_and_sizes_and_no_content() -> None:
    assert json.loads(request_body("session_start", CONTEXT)) == {
        "event": "session_start",
        "tenant": "agents",
        "session_id": "s1",
        "job_id": "j1",
        "trigger": "bulk",
        "pre_tokens": 7,
    }


def test_a_hook_is_named_by_its_id_and_has_its_own_time_and_event() -> None:
    endpoint = Endpoint("id-1", "session_start", "https://example.com/?token=abc", "whsec_abc", 2.5)
    hook = HttpHook(endpoint, GuardedCaller(AddressRules()))
    assert (hook.name, hook.timeout_seconds) == ("http:id-1", 2.5)
    assert hook.hears("session_start")
    assert not hook.hears("pre_compact")
    assert "abc" not in repr(hook)
