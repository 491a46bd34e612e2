from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, get_args

import pluggy
import pytest

from compaction.core.hooks import Event
from compaction.hooks.plugins import PluginHook, hook, load_plugins
from compaction.ports import HookContext
from compaction.settings import SettingsError

pytestmark = pytest.mark.anyio

CONTEXT = HookContext(
    tenant="agents", session_id="s1", job_id="j1", trigger="manual", instructions=None, pre_tokens=170_000
)
MODULE = """
from compaction.hooks.plugins import hook

@hook
def pre_compact(context):
    return {"instructions": f"{context.session_id} has {context.pre_tokens} tokens"}
"""


class Plain:
    """Plain functions; one has no use for the context."""

    @hook
    def pre_compact(self, context: HookContext) -> dict[str, str]:
        return {"instructions": f"{context.job_id} in {threading.current_thread().name}"}

    @hook
    def session_start(self) -> None:
        return None


class Waiting:
    """An async function for one event alone."""

    @hook
    async def pre_compact(self, context: HookContext) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"veto": f"{context.tenant} in {threading.current_thread().name}"}


def named(name: str, value: str) -> EntryPoint:
    """An entry point as an installed package has it."""
    return EntryPoint(name, value, "compactd.hooks")


def hook_of(plugin: object) -> PluginHook:
    """The plugin as a hook."""
    return PluginHook("acme", plugin, timeout_seconds=5)


async def test_a_plain_function_runs_in_a_thread_and_gets_the_context() -> None:
    plugin = hook_of(Plain())
    assert plugin.name == "plugin:acme"
    assert plugin.timeout_seconds == 5
    assert await plugin.ask("pre_compact", CONTEXT) == {"instructions": "j1 in compactd-plugin:acme"}


async def test_a_plugin_may_have_nothing_to_say() -> None:
    assert await hook_of(Plain()).ask("session_start", CONTEXT) is None


async def test_an_async_function_runs_on_the_loop() -> None:
    here = threading.current_thread().name
    assert await hook_of(Waiting()).ask("pre_compact", CONTEXT) == {"veto": f"agents in {here}"}


async def test_a_plugin_hears_what_it_implements() -> None:
    assert hook_of(Plain()).hears("session_start")
    assert hook_of(Waiting()).hears("pre_compact")
    assert not hook_of(Waiting()).hears("session_start")


async def test_a_plain_function_may_give_something_to_await() -> None:
    class Handing:
        @hook
        def pre_compact(self) -> Any:  # noqa: ANN401 - something to await
            return Waiting().pre_compact(CONTEXT)

    answer = await hook_of(Handing()).ask("pre_compact", CONTEXT)
    assert answer["veto"].startswith("agents")


@pytest.mark.parametrize("error", [KeyError, SystemExit, KeyboardInterrupt])
async def test_what_a_plugin_raises_is_an_ordinary_error_whatever_it_is(error: type[BaseException]) -> None:
    class Raising:
        @hook
        def pre_compact(self) -> None:
            raise error

        @hook
        async def session_start(self) -> None:
            raise error

    for event in get_args(Event):
        with pytest.raises((KeyError, RuntimeError)):
            await hook_of(Raising()).ask(event, CONTEXT)


async def test_installed_plugins_are_found_by_their_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme_compaction.py").write_text(MODULE)
    facts = tmp_path / "acme_compaction-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-compaction\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[compactd.hooks]\nacme = acme_compaction\n")
    monkeypatch.syspath_prepend(tmp_path)

    (plugin,) = load_plugins(5)

    assert await plugin.ask("pre_compact", CONTEXT) == {"instructions": "s1 has 170000 tokens"}


async def test_without_installed_plugins_there_are_none() -> None:
    assert load_plugins(5) == ()


async def test_plugins_are_in_the_order_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ordered_hooks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    found = [named(name, "ordered_hooks") for name in ("zeta", "alpha", "mid")]
    assert [plugin.name for plugin in load_plugins(5, found)] == ["plugin:alpha", "plugin:mid", "plugin:zeta"]


async def test_a_plugin_that_cannot_be_imported_stops_the_start_by_its_name() -> None:
    with pytest.raises(SettingsError, match=r"^The hook plugin legal cannot be loaded \(ModuleNotFoundError\)\.$"):
        load_plugins(5, [named("legal", "no_such_module_at_all")])


async def test_a_plugin_for_something_unknown_is_refused() -> None:
    class Unknown:
        @hook
        def before_compact(self) -> None: ...

    with pytest.raises(pluggy.PluginValidationError):
        hook_of(Unknown())


async def test_a_plugin_that_wants_more_than_the_context_is_refused() -> None:
    class Curious:
        @hook
        def pre_compact(self, context: HookContext, messages: object) -> None: ...

    with pytest.raises(pluggy.PluginValidationError):
        hook_of(Curious())


async def test_a_plugin_cannot_wrap_others() -> None:
    class Wrapping:
        @hook(wrapper=True)
        def pre_compact(self) -> Generator[None, Any, Any]:
            return (yield)

    class WrappingTheOldWay:
        @hook(hookwrapper=True)
        def pre_compact(self) -> Generator[None, Any, None]:
            yield

    for plugin in (Wrapping(), WrappingTheOldWay()):
        with pytest.raises(pluggy.PluginValidationError):
            hook_of(plugin)
