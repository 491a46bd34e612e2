"""A fake Messages API over real HTTP on loopback, for tests, benches and demonstrations of failures.

Wire-accurate where our side can notice: status lines, headers, chunked event streams in the order of the real API,
error bodies, prompt-too-long by window. What it answers is a script (`script.py`); what it was asked is a ledger
(`ledger.py`).

    python -m ops.fake_provider --port 8089 --script script.json

In tests: `async with FakeProvider(script) as fake:` in the running loop, `with FakeProviderThread(script) as fake:`
beside it. `fake.url` is the base URL for ANTHROPIC_BASE_URL.
"""

from ops.fake_provider.ledger import Call
from ops.fake_provider.script import Script, ScriptProblem
from ops.fake_provider.server import FakeProvider, FakeProviderThread

__all__ = ["Call", "FakeProvider", "FakeProviderThread", "Script", "ScriptProblem"]
