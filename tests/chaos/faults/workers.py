"""Workers that die, freeze and are told to go, at the moments that hurt."""

from __future__ import annotations

import re
import signal
import time

from tests.chaos.arena import LEASE_SECONDS
from tests.chaos.proxy import Link
from tests.chaos.scene import Later, Scene
from tests.chaos.slots import Slot

SAVING = rb'\{"text":"'  # the checkpoint of a paid summary
FINISHING = rb"tengu_compact"  # the event that a successful end writes
_UUID = rb"\w{8}-\w{4}-7\w{3}-\w{4}-\w{12}"
_JOB_ID = re.compile(_UUID)


def claiming(pid: int) -> bytes:
    """The owner of this process and a job's id beside each other, in either order."""
    owner = b":%d:" % pid
    return b"%s.{0,60}%s|%s.{0,60}%s" % (owner, _UUID, _UUID, owner)


def kill_mid_call(scene: Scene) -> None:
    """Signal 9 while the model writes."""
    worker = scene.busy_worker()
    scene.arena.record.injected("kill -9 mid-call", worker.kill())


def kill_between_reply_and_save(scene: Scene) -> None:
    """Signal 9 when the reply is there and its checkpoint is not."""

    def act(worker: Slot, link: Link) -> None:
        scene.arena.record.injected("kill -9 between reply and checkpoint", worker.kill() + 1)
        link.cut()

    scene.catch(SAVING, act)


def kill_between_save_and_commit(scene: Scene) -> None:
    """Signal 9 when the checkpoint is there and the commit is not: no second call."""

    def act(worker: Slot, link: Link) -> None:
        scene.arena.record.injected("kill -9 between checkpoint and commit", worker.kill())
        _note_paid(scene, link)
        link.cut()

    scene.catch(FINISHING, act)


def kill_between_commit_and_answer(scene: Scene) -> None:
    """Signal 9 when Postgres has committed and the worker does not know yet."""

    def act(worker: Slot, link: Link) -> None:
        scene.arena.record.injected("kill -9 between commit and answer", worker.kill())
        _note_paid(scene, link)

    scene.catch(FINISHING, act, when="after")


def _note_paid(scene: Scene, link: Link) -> None:
    """From now on nothing may be paid for this job."""
    if found := _JOB_ID.search(link.said):
        scene.arena.record.paid[found.group().decode()] = time.time()


def kill_between_claim_and_answer(scene: Scene) -> None:
    """Signal 9 when the job is claimed and the worker does not know yet."""
    worker = scene.any_worker()

    def act(_link: Link) -> None:
        scene.arena.record.injected("kill -9 between claim and answer", worker.kill())

    scene.producer.order(2)
    scene.catch_at(worker.postgres, claiming(worker.pid), act, when="after")


def freeze(scene: Scene) -> Later:
    """SIGSTOP past the lease, then SIGCONT: what the sleeper brings is thrown away."""
    worker = scene.busy_worker()
    scene.arena.record.injected("SIGSTOP past the lease, SIGCONT", worker.busy_calls)
    worker.signal(signal.SIGSTOP)
    worker.strike()
    worker.is_held = True

    def wake() -> None:
        worker.signal(signal.SIGCONT)
        worker.is_held = False

    return Later(LEASE_SECONDS + 1.5, wake)


def drain(scene: Scene) -> None:
    """SIGTERM under load: exit 0, and no attempt is used up."""
    worker = scene.busy_worker()
    scene.arena.record.injected("SIGTERM under load")
    code = worker.drain()
    if code != 0:
        scene.arena.record.problems.append(f"{worker.name} told to go ended with {code}")


def poison(scene: Scene) -> None:
    """A job whose request kills its worker, every time. Its end is awaited with all the others'."""
    reference = scene.producer.order_poison()
    scene.arena.record.poison.add(reference)
    for worker in scene.arena.workers:

        def act(_link: Link, worker: Slot = worker) -> None:
            scene.arena.record.injected("poison job", worker.kill())

        worker.provider.set_trap(reference.encode(), act, repeats=True)


def lose_the_message_with_its_reader(scene: Scene) -> None:
    """SIGSTOP, publish, kill -9: the message dies in the socket of a worker that never saw it."""
    worker = scene.any_worker()
    in_flight = worker.busy_calls
    worker.signal(signal.SIGSTOP)
    scene.producer.order(3)
    time.sleep(0.5)
    worker.kill()
    scene.arena.record.injected("kill -9 with messages in the socket", in_flight)
