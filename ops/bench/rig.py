"""What every bench of jobs stands on: real Postgres with fsync, real Valkey, the fake provider, each a process."""

from __future__ import annotations

from ops.bench.provider import Provider
from ops.bench.servers import Servers
from ops.embedded.ports import LOOPBACK
from ops.stack.settings import ROOT

__all__ = ["ROOT", "Rig"]


class Rig(Servers):
    """`with Rig() as rig:` everything runs, in a folder of its own that is gone at the end."""

    provider: Provider

    def begin(self) -> None:
        """The provider comes last and goes first."""
        self.provider = self.resources.enter_context(Provider(self.folder))

    def environ(self) -> dict[str, str]:
        """For a worker: the servers, and the fake provider in the place of the real one."""
        return super().environ() | {
            "ANTHROPIC_BASE_URL": self.provider.url,
            "ANTHROPIC_API_KEY": "a-key-of-the-bench",
            "NO_PROXY": LOOPBACK,
            "no_proxy": LOOPBACK,
        }
