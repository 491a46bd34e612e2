"""A broker that forgets, vanishes, hangs up, says nothing, and repeats itself."""

from __future__ import annotations

import time

import redis

from tests.chaos.producer import accepted
from tests.chaos.scene import Scene
from tests.chaos.slots import wait

STORM_SECONDS = 2.0
FLUSH_SECONDS = 0.1
KICK_SECONDS = 0.25
COPIES = 3
MAX_ENDED = 20  # ended jobs among those that are published again


def flush_in_a_loop(scene: Scene) -> None:
    """FLUSHALL again and again while jobs are enqueued."""
    scene.arena.record.injected("FLUSHALL in a loop")
    with scene.arena.redis() as client:
        for _ in range(int(STORM_SECONDS / FLUSH_SECONDS)):
            client.flushall()
            time.sleep(FLUSH_SECONDS)


def go_away(scene: Scene) -> None:
    """The broker is down; the API goes on taking jobs. It comes back empty."""
    scene.arena.record.injected(f"broker down {scene.long_seconds:.0f} s")
    end = time.monotonic() + scene.long_seconds
    scene.arena.valkey.stop()
    try:
        before = len(accepted(scene.producer.book))
        scene.producer.order(4)
        if not wait(lambda: len(accepted(scene.producer.book)) > before, scene.long_seconds + 10):
            scene.arena.record.problems.append("no job was accepted while the broker was down")
        time.sleep(max(0.0, end - time.monotonic()))
    finally:
        scene.arena.valkey.start()


def drop_connections(scene: Scene) -> None:
    """CLIENT KILL for everybody, several times a second."""
    scene.arena.record.injected("broker connections dropped")
    with scene.arena.redis() as client:
        for _ in range(int(STORM_SECONDS / KICK_SECONDS)):
            for kind in ("normal", "pubsub"):
                client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
            time.sleep(KICK_SECONDS)


def say_nothing(scene: Scene) -> None:
    """Half-open: connections stay and nothing comes through, for workers and API alike."""
    scene.arena.record.injected("broker half-open")
    slots = (scene.arena.api, *scene.arena.workers)
    for slot in slots:
        slot.valkey.block()
    try:
        time.sleep(max(STORM_SECONDS, scene.long_seconds / 4))
    finally:
        for slot in slots:
            slot.valkey.unblock()


def deliver_three_times(scene: Scene) -> None:
    """Every message three times, reordered, and those of ended jobs too."""
    scene.arena.record.injected("every message three times, reordered")
    ended = scene.arena.rows(
        "SELECT id::text FROM jobs WHERE ended_at IS NOT NULL ORDER BY id DESC LIMIT %s", MAX_ENDED
    )
    ids = [*scene.live_jobs(), *(row[0] for row in ended)] * COPIES
    scene.rng.shuffle(ids)
    scene.ring(ids)


def swallow_messages(scene: Scene) -> None:
    """The queue's keys vanish while jobs wait in it; nobody hears an error."""
    scene.arena.record.injected("messages swallowed")
    with scene.arena.redis() as client:
        for _ in range(int(STORM_SECONDS / FLUSH_SECONDS / 4)):
            for key in client.scan_iter("compactd:*"):
                try:
                    client.delete(key)
                except redis.RedisError:
                    return
            time.sleep(FLUSH_SECONDS)
