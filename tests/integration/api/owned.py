"""Finds in the OpenAPI document what a tenant can own, makes one of each for an owner, and fills the routes with it.

Nothing here names a route: a parameter gets its value from the call that creates such a thing (POST on the list it
stands in, PUT on its own address), with the document's example as the body. A new route is covered as it is written;
a parameter that nothing can fill fails the test by its name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import httpx2

PARAMETER = re.compile(r"\{(\w+)\}")
CANARY = "walled-off-canary"  # stands in everything that the owner stores
CHOSEN = "walled-off-thing"  # a name that the owner chooses itself
# Whose they are if not a tenant's, and a value that a call can be made with.
NOBODYS = {"name": "claude-1"}  # providers: the operator's, and every tenant's key is refused before it is looked up
Json = Any
Ripen = Mapping[str, Callable[[str], Awaitable[None]]]


@dataclass(frozen=True)
class Operation:
    """One call of the document."""

    path: str
    method: str
    details: dict[str, Json]

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def names(self) -> list[str]:
        """The parameters in its address."""
        return PARAMETER.findall(self.path)

    @property
    def example(self) -> Json:
        """The body that the document shows; None when the call takes none."""
        content = self.details.get("requestBody", {}).get("content", {})
        return content.get("application/json", {}).get("example")

    @property
    def creates_by_name(self) -> bool:
        """Whether the caller chooses the name of what it makes: each tenant has such names of its own."""
        return self.method == "put" and self.path.endswith("}")


def operations(document: dict[str, Json]) -> list[Operation]:
    """All calls, the shorter addresses first: what a thing stands in is made before it.

    A call that takes bodies of several shapes comes once for each, first with the shape that its own example shows.
    """
    found = [
        Operation(path, method, one)
        for path, item in document["paths"].items()
        for method, details in item.items()
        if method in {"get", "put", "post", "patch", "delete", "head", "options"}
        for one in (details, *_other_shapes(details, document["components"]["schemas"]))
    ]
    return sorted(found, key=lambda operation: (operation.path.count("/"), operation.path, operation.method))


def _other_shapes(details: dict[str, Json], schemas: dict[str, Json]) -> Iterator[dict[str, Json]]:
    """The call with a body of each shape beside the first, as the shape's own example shows it."""
    content = details.get("requestBody", {}).get("content", {}).get("application/json", {})
    for shape in content.get("schema", {}).get("oneOf", ())[1:]:
        example = schemas[shape["$ref"].rsplit("/", 1)[-1]]["examples"][0]
        yield details | {"requestBody": {"content": {"application/json": {"example": example}}}}


@dataclass
class Owner:
    """A tenant that has one of everything.

    `things` are its ids by the parameters' names, `words` the parameters that name nothing (an enumeration's first).
    """

    tenant: str
    client: httpx2.AsyncClient
    calls: list[Operation]
    ripen: Ripen = field(default_factory=dict)
    things: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=lambda: dict(NOBODYS))

    async def settle(self) -> None:
        """Makes one of everything that an address asks for."""
        for operation in self.calls:
            for name in operation.names:
                await self._have(name)

    async def _have(self, name: str) -> None:
        """Makes the thing, and first what its address and its body need."""
        operation = next((one for one in self.calls if name in one.names), None)
        if operation is None or name in self.things or name in self.words:
            return
        if (word := _choice(name, operation)) is not None:
            self.words[name] = word
            return
        maker = self._maker(name, operation)
        for needed in (*_names(maker.example), *(one for one in maker.names if one != name)):
            await self._have(needed)
        self.things[name] = await self._made(name, maker)

    def _maker(self, name: str, operation: Operation) -> Operation:
        """The call that makes such a thing. Raises AssertionError when the document has none."""
        place = operation.path[: operation.path.index(f"/{{{name}}}")]
        for maker in self.calls:
            if (maker.method, maker.path) == ("post", place):
                return maker
        for maker in self.calls:
            if maker.creates_by_name and maker.path.endswith(f"/{{{name}}}"):
                return maker
        raise AssertionError(f"nothing fills {{{name}}} of {operation}: no POST {place} and no PUT on its address")

    async def _made(self, name: str, maker: Operation) -> str:
        address = maker.path.format(**(self.words | self.things | {name: CHOSEN}))
        answer = await self.client.request(maker.method, address, json=self.body(maker))
        assert answer.is_success, (str(maker), answer.text)
        if maker.creates_by_name:
            return CHOSEN
        body = answer.json()
        made = str(body.get(name) or body["id"])
        if name in self.ripen:
            await self.ripen[name](made)
        return made

    def address(self, operation: Operation, instead: Mapping[str, str]) -> str:
        """The call's address with the owner's things in it."""
        return operation.path.format(**(self.words | self.things | dict(instead)))

    def body(self, operation: Operation, instead: Mapping[str, str] = MappingProxyType({})) -> Json:
        """The call's example with the owner's things in it, and its tenant."""
        return filled(operation.example, self.things | {"tenant": self.tenant} | dict(instead))

    def query(self, operation: Operation) -> dict[str, str]:
        """The owner's things in the parameters behind the `?`."""
        given = [
            parameter["name"] for parameter in operation.details.get("parameters", ()) if parameter["in"] == "query"
        ]
        return {name: self.things[name] for name in given if name in self.things}

    def names_something(self, operation: Operation) -> bool:
        """Whether the call names a thing of the owner's in its address or body, other than one that it would make."""
        names = {*operation.names[: -1 if operation.creates_by_name else None], *_names(operation.example)}
        return bool(names & set(self.things))


def filled(body: Json, things: Mapping[str, str]) -> Json:
    """A body with the owner's things under the names that ask for one, and the canary in its texts to the model."""
    if isinstance(body, dict):
        return {name: _member(name, value, things) for name, value in body.items()}
    return [filled(item, things) for item in body] if isinstance(body, list) else body


def _member(name: str, value: Json, things: Mapping[str, str]) -> Json:
    if name in things:
        return things[name]
    if name.removesuffix("s") in things and isinstance(value, list):
        return [things[name.removesuffix("s")]]
    if name in {"content", "system", "instructions"} and isinstance(value, str):
        return CANARY
    return filled(value, things)


def _names(body: Json) -> Iterator[str]:
    """The names in a body, in any depth; of a list of ids the name of one."""
    if isinstance(body, dict):
        for name, value in body.items():
            yield from (name, name.removesuffix("s"))
            yield from _names(value)
    elif isinstance(body, list):
        for item in body:
            yield from _names(item)


def _choice(name: str, operation: Operation) -> str | None:
    """The first of the words that a parameter may have; None when it is no such parameter."""
    for parameter in operation.details["parameters"]:
        if parameter["name"] == name and "enum" in parameter["schema"]:
            return str(parameter["schema"]["enum"][0])
    return None
