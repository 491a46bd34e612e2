"""The supervisor's keeper starts a dead service again, slower each time, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.embedded.errors import Interrupted, LocalError
from ops.embedded.waiting import StopRequest
from ops.stack.supervisor import Keeper, Supervisor, pause_seconds


class FakeService:
    """A service that lives and dies as told."""

    name = "api"

    def __init__(self, log: Path, *, ready: bool = True, lives: bool = True) -> None:
        self.log = log
        self.pid = 0
        self.is_alive = False
        self._ready = ready
        self._lives = lives

    @property
    def is_ready(self) -> bool:
        return self.is_alive and self._ready

    def spawn(self) -> None:
        self.pid += 1
        self.is_alive = self._lives

    def die(self) -> None:
        self.is_alive = False


@pytest.fixture
def service(tmp_path: Path) -> FakeService:
    return FakeService(tmp_path / "api.log")


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def keeper(service: FakeService, lines: list[str]) -> Keeper:
    kept = Keeper(service, lines.append)
    kept.begin(0.0)
    return kept


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (8, 30.0), (10_000, 30.0)]
)
def test_the_pause_doubles_from_half_a_second_to_half_a_minute(failures: int, seconds: float) -> None:
    assert pause_seconds(failures) == seconds


def test_a_living_service_is_left_alone(keeper: Keeper, service: FakeService, lines: list[str]) -> None:
    assert not keeper.look(1.0)
    assert (service.pid, lines) == (1, [])


def test_a_dead_service_comes_back_after_its_pause(keeper: Keeper, service: FakeService, lines: list[str]) -> None:
    service.die()

    assert not keeper.look(10.0)
    assert not keeper.look(10.4)
    assert keeper.look(10.5)
    assert service.pid == 2
    assert not keeper.look(10.6)
    assert lines == ["api (pid 1) ended; starting it again in 0.5 s", "api runs again (pid 2)"]


def test_a_service_that_keeps_dying_waits_longer_each_time(keeper: Keeper, service: FakeService) -> None:
    service.die()
    keeper.look(10.0)
    keeper.look(10.5)
    service.die()

    assert not keeper.look(11.0)
    assert not keeper.look(11.9)
    assert keeper.look(12.0)


def test_a_service_that_lived_half_a_minute_starts_with_the_first_pause_again(
    keeper: Keeper, service: FakeService
) -> None:
    for death in (1.0, 2.0, 4.0):
        service.die()
        keeper.look(death)
        keeper.look(death + 2.0)
    service.die()

    assert not keeper.look(36.0)  # 30 s after its start at second 6
    assert keeper.look(36.5)


def supervisor(stop: StopRequest, lines: list[str]) -> Supervisor:
    return Supervisor(stop, lines.append, lambda: None)


def test_a_start_waits_until_all_are_ready(service: FakeService, lines: list[str]) -> None:
    supervisor(StopRequest(), lines).start([service])

    assert service.pid == 1


def test_a_service_that_ends_during_the_start_is_named_with_the_end_of_its_log(
    tmp_path: Path, lines: list[str]
) -> None:
    broken = FakeService(tmp_path / "api.log", lives=False)
    broken.log.write_text("all the reasons\n")

    with pytest.raises(LocalError, match=r"api ended(.|\n)*all the reasons"):
        supervisor(StopRequest(), lines).start([broken])


def test_a_service_that_never_gets_ready_ends_the_start(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(LocalError, match="api is not ready"):
        supervisor(StopRequest(), lines).start([FakeService(tmp_path / "api.log", ready=False)], seconds=0.0)


def test_a_request_to_stop_interrupts_the_start(tmp_path: Path, lines: list[str]) -> None:
    stop = StopRequest()
    stop.is_asked = True

    with pytest.raises(Interrupted):
        supervisor(stop, lines).start([FakeService(tmp_path / "api.log", ready=False)])


def test_watching_restarts_tells_and_bounds_logs(
    service: FakeService, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.stack.supervisor.TICK_SECONDS", 0.0)
    changes: list[int] = []
    watching = Supervisor(StopRequest(), lines.append, lambda: changes.append(service.pid))
    watching.start([service])
    service.die()

    watching.watch(lambda: service.pid == 2)

    assert changes == [2]
