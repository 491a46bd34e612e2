"""The fake as a server: in the running loop, in a thread of its own, or from the command line."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from compaction.core.jsonbytes import Json
from ops.fake_provider.answers import Answers
from ops.fake_provider.http import Connection
from ops.fake_provider.ledger import Call, Ledger
from ops.fake_provider.script import Script, script_from

LOOPBACK = "127.0.0.1"
BACKLOG = 1_024  # connections that wait to be accepted; a bench opens hundreds at once
START_SECONDS = 10.0  # a thread that has not bound its port by then never will


class FakeProvider:
    """`async with FakeProvider(script) as fake:` serves in the running loop until the block ends."""

    def __init__(self, script: Script | Json = None, *, port: int = 0, ledger: Path | None = None) -> None:
        self.ledger = Ledger(ledger)
        self._answers = Answers(script if isinstance(script, Script) else script_from(script), self.ledger)
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return f"http://{LOOPBACK}:{self._port}"

    @property
    def calls(self) -> list[Call]:
        """The model calls so far, oldest first."""
        return self.ledger.messages

    @property
    def open_connections(self) -> int:
        """Clients that are connected now."""
        return len(self._connections)

    def play(self, script: Script | Json) -> None:
        """Replaces the script."""
        self._answers.play(script if isinstance(script, Script) else script_from(script))

    def release(self) -> None:
        """Begins the replies that the script holds back at this moment; from any thread."""
        if self._server is not None:
            self._server.get_loop().call_soon_threadsafe(self._release)

    def _release(self) -> None:
        for connection in list(self._connections):
            connection.release()

    async def start(self) -> None:
        """Binds the port; 0 means any."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._answers.answer, self._connections), LOOPBACK, self._port, backlog=BACKLOG
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Hangs up on everybody and frees the port."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.hang_up()
        while self._connections:  # noqa: ASYNC110 - two turns of the loop; an event would need a hook per connection
            await asyncio.sleep(0)
        self.ledger.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


class FakeProviderThread:
    """`with FakeProviderThread(script) as fake:` serves in a thread with a loop of its own."""

    def __init__(self, script: Script | Json = None, *, port: int = 0, ledger: Path | None = None) -> None:
        self._fake = FakeProvider(script, port=port, ledger=ledger)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-provider", daemon=True)

    def __enter__(self) -> FakeProvider:
        self._thread.start()
        if not self._ready.wait(START_SECONDS):
            raise RuntimeError("the fake provider did not start")
        return self._fake

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._fake.start())
        self._loop.call_soon(self._ready.set)
        self._loop.run_forever()
        self._loop.run_until_complete(self._fake.stop())
        self._loop.close()
