"""The wire between a client and the service, which a test can cut: before a request arrives, or before its answer."""

from __future__ import annotations

from dataclasses import dataclass

import httpx2


@dataclass(frozen=True, slots=True)
class Cut:
    """The next request of this method whose path ends so is cut off; `done` says whether the service still gets it."""

    method: str
    path_end: str
    done: bool


class Wire(httpx2.AsyncBaseTransport):
    """Passes requests on to the service. `cuts` come true once each; nothing gets through while `is_away`."""

    def __init__(self) -> None:
        self.cuts: list[Cut] = []
        self.is_away = False
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.is_away:
            raise httpx2.ConnectError("nobody is there")
        for cut in self.cuts:
            if request.method == cut.method and request.url.path.endswith(cut.path_end):
                self.cuts.remove(cut)
                if cut.done:
                    answer = await self._inner.handle_async_request(request)
                    await answer.aread()
                    await answer.aclose()
                raise httpx2.ReadError("cut off")
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()
