"""The running service, spoken to by the product's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from compaction.client import Client
from ops.embedded import Valkey
from tests.integration.service import KEY, Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    with Service(tmp_path_factory.mktemp("service"), module_database_url, valkey.url()) as running:
        yield running


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    service.play()


@pytest.fixture
async def client(service: Service) -> AsyncIterator[Client]:
    async with Client(str(service.http.base_url), KEY) as speaking:
        yield speaking
