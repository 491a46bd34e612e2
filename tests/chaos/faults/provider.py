"""A model's API that refuses, is overloaded and hangs up in the middle of a reply."""

from __future__ import annotations

import time
from typing import Any

from tests.chaos.arena import SUMMARY
from tests.chaos.scene import Scene

STORM_SECONDS = 2.0
REFUSED = "429 storm"
OVERLOADED = "529 storm"
DROPPED = "provider connections dropped mid-reply"


def refuse_with_429(scene: Scene) -> None:
    """Every call is refused for a while, with a Retry-After."""
    _storm(scene, REFUSED, _refusal(429, "rate_limit_error") | {"headers": {"retry-after": "1"}})


def be_overloaded(scene: Scene) -> None:
    """Every call is refused for a while, without one."""
    _storm(scene, OVERLOADED, _refusal(529, "overloaded_error"))


def hang_up(scene: Scene) -> None:
    """Connections are reset while the model writes."""
    worker = scene.busy_worker()
    scene.arena.record.injected(DROPPED, worker.busy_calls)
    worker.provider.cut()


def _storm(scene: Scene, kind: str, step: dict[str, Any]) -> None:
    scene.arena.record.injected(kind)
    scene.arena.fake.play([step])
    try:
        scene.producer.order(2)
        time.sleep(STORM_SECONDS)
    finally:
        scene.arena.fake.play(SUMMARY)


def _refusal(status: int, name: str) -> dict[str, Any]:
    return {"status": status, "body": {"type": "error", "error": {"type": name, "message": "not now"}}}
