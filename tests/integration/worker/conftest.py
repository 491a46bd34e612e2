"""One running service for the tests of a module that leave it whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ops.embedded import Valkey
from tests.integration.service import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """API, one worker and the fake provider."""
    with Service(tmp_path_factory.mktemp("service"), module_database_url, valkey.url()) as running:
        yield running
