"""Every kind of fault that the suite knows, and how often it is drawn."""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.faults import broker, database, provider, workers
from tests.chaos.scene import Later, Scene

Fault = Callable[[Scene], Later | None]

# The heavier, the oftener. Faults that last long are drawn less, so that a run stays bounded in time.
WEIGHTS: dict[Fault, int] = {
    workers.poison: 1,
    workers.kill_mid_call: 8,
    workers.kill_between_reply_and_save: 5,
    workers.kill_between_save_and_commit: 8,
    workers.kill_between_commit_and_answer: 6,
    workers.kill_between_claim_and_answer: 4,
    workers.lose_the_message_with_its_reader: 3,
    workers.freeze: 2,
    workers.drain: 4,
    broker.flush_in_a_loop: 4,
    broker.go_away: 1,
    broker.drop_connections: 4,
    broker.say_nothing: 2,
    broker.deliver_three_times: 8,
    broker.swallow_messages: 4,
    database.restart_mid_commit: 5,
    database.cut_between_commit_and_answer: 8,
    database.hang_up: 6,
    database.say_nothing: 2,
    database.depose_the_leader: 5,
    database.lead_twice: 4,
    database.kill_the_api_before_its_answer: 3,
    database.cut_the_api_before_its_answer: 5,
    provider.refuse_with_429: 3,
    provider.be_overloaded: 2,
    provider.hang_up: 5,
}
