"""Plugins of the operator: Python packages with an entry point in the group `compactd.hooks` (docs/hooks.md).

    from compaction.hooks.plugins import hook

    @hook
    def pre_compact(context):
        return {"instructions": "Keep the ticket numbers."}

The entry point names the module, or an object with such methods. Functions may be plain (each call runs in a thread) or
`async` (they run on the worker's loop and must not block it).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import get_args

import pluggy

from compaction.core.hooks import Event, one_line
from compaction.core.jsonbytes import Json
from compaction.hooks.threads import Threads
from compaction.ports import HookContext
from compaction.settings import SettingsError

PROJECT = "compactd"  # pluggy's name for who asks
GROUP = "compactd.hooks"  # of entry points
MAX_CALLS = 32  # of one plugin at once: a stuck plugin keeps this many threads and no more
MAX_NAME_CHARS = 80  # of an entry point, in notes

_spec = pluggy.HookspecMarker(PROJECT)
hook = pluggy.HookimplMarker(PROJECT)  # what plugins mark their functions with


class HookSpecs:
    """What a plugin may implement; it may leave out the argument or either function."""

    @_spec
    def pre_compact(self, context: HookContext) -> Json | Awaitable[Json]:
        """Before a compaction: None, or {"instructions": …} to add some, or {"veto": the reason} to forbid it."""

    @_spec
    def session_start(self, context: HookContext) -> Json | Awaitable[Json]:
        """After the summary: None, or {"messages": [{"role": "user", "content": …}]} for the new conversation."""


class PluginHook:
    """A plugin as a hook of the chain, with a pluggy manager of its own: if it raises, the others are still asked."""

    def __init__(self, name: str, plugin: object, *, timeout_seconds: float) -> None:
        """Raises pluggy.PluginValidationError when `plugin` implements something unknown, or as a wrapper."""
        self.name = f"plugin:{one_line(name, MAX_NAME_CHARS)}"
        self.timeout_seconds = timeout_seconds
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(HookSpecs)
        self._manager.register(plugin, name=name)
        self._manager.check_pending()
        self._threads = Threads(f"compactd-{self.name}"[:MAX_NAME_CHARS], MAX_CALLS)
        self._implemented = {event: _implementation(self._manager, event) for event in get_args(Event)}

    def hears(self, event: Event) -> bool:
        """Whether the plugin implements the event."""
        return self._implemented[event] is not None

    async def ask(self, event: Event, context: HookContext) -> Json:
        """What the plugin answers; raises what it raises."""
        call = partial(getattr(self._manager.hook, event), context=context)
        implementation = self._implemented[event]
        plain = implementation is None or not inspect.iscoroutinefunction(implementation.function)
        answers = await self._threads.run(call) if plain else call()
        answer = answers[0] if answers else None  # pluggy leaves None out
        return await _awaited(answer) if inspect.isawaitable(answer) else answer


def load_plugins(timeout_seconds: float, found: Iterable[EntryPoint] | None = None) -> tuple[PluginHook, ...]:
    """The installed plugins by name. Raises SettingsError naming one that cannot be loaded.

    A worker without one of its plugins might compact what that plugin forbids: it does not start.
    """
    listed = entry_points(group=GROUP) if found is None else found
    return tuple(_loaded(entry, timeout_seconds) for entry in sorted(listed, key=lambda entry: entry.name))


def _loaded(entry: EntryPoint, timeout_seconds: float) -> PluginHook:
    try:
        return PluginHook(entry.name, entry.load(), timeout_seconds=timeout_seconds)
    except Exception as error:
        name = one_line(entry.name, MAX_NAME_CHARS)
        raise SettingsError(f"The hook plugin {name} cannot be loaded ({type(error).__name__}).") from error


def _implementation(manager: pluggy.PluginManager, event: Event) -> pluggy.HookImpl | None:
    found: list[pluggy.HookImpl] = getattr(manager.hook, event).get_hookimpls()
    if any(one.wrapper or one.hookwrapper for one in found):
        raise pluggy.PluginValidationError(found[0].plugin, "a hook of compactd cannot be a wrapper")
    return found[0] if found else None


async def _awaited(answer: Awaitable[Json]) -> Json:
    """The awaited answer; what would end the loop becomes an error of the plugin."""
    try:
        return await answer
    except (KeyboardInterrupt, SystemExit) as error:
        raise RuntimeError(f"{type(error).__name__} in a coroutine") from error
