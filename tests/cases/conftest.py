"""One running service for all cases of this test process; they are played one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ops.embedded import Valkey
from tests.cases.play import ENVIRON
from tests.integration.service import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """API, one worker and the fake provider, all on virtual time."""
    with Service(tmp_path_factory.mktemp("cases"), module_database_url, valkey.url(), **ENVIRON) as running:
        yield running
