"""What a resource type adds to the common use cases: its rules, and whether it has a machine."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from muster.core.db import Connection
from muster.core.errors import FieldError
from muster.core.ids import ResourceId
from muster.core.settings import Settings
from workflows.admission import World
from workflows.model.resource import Call, Resource
from workflows.model.wire import Properties
from workflows.store.resources import Content


@dataclass(frozen=True)
class Draft:
    """A resource as it shall become, its secrets taken out of the properties."""

    id: ResourceId
    content: Content
    secrets: dict[str, str] = field(
        default_factory=dict
    )  # path -> plain text, only those in this request
    kept: frozenset[str] = frozenset()  # paths of secrets that are stored already

    @property
    def properties(self) -> dict[str, Any]:
        return self.content.properties


def _nothing(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    del draft, old, settings
    return []


async def _anything(
    tx: Connection, call: Call, draft: Draft, old: Resource | None, world: World
) -> None:
    del tx, call, draft, old, world


def _as_given(draft: Draft, world: World) -> Content:
    del world
    return draft.content


@dataclass(frozen=True)
class Birth:
    """What a resource gets when it is made and keeps for life."""

    secrets: dict[str, str] = field(default_factory=dict)
    scratch: dict[str, Any] = field(default_factory=dict)  # of its machine


async def _free_to_go(tx: Connection, call: Call, resource: Resource) -> None:
    del tx, call, resource


async def _alone(tx: Connection, call: Call, resource: Resource) -> None:
    del tx, call, resource


def _nothing_more(draft: Draft, old: Resource | None) -> list[str]:
    del draft, old
    return []


def _all_usable(draft: Draft, old: Resource) -> frozenset[str]:
    del draft, old
    return frozenset()


def _nothing_yet(now: datetime) -> dict[str, Any]:
    del now
    return {}


@dataclass(frozen=True)
class Kind:
    arm_type: str
    properties: type[Properties]
    lifecycle: str | None = None  # None: a write is done when it is committed
    validate: Callable[[Draft, Resource | None, Settings], list[FieldError]] = _nothing  # pure
    admit: Callable[[Connection, Call, Draft, Resource | None, World], Awaitable[None]] = _anything
    fill: Callable[[Draft, World], Content] = _as_given  # defaults that need the world
    observed: Callable[[datetime], dict[str, Any]] = _nothing_yet  # read-only ones from the start
    birth: Callable[[], Birth] = Birth
    # Actions that this change needs on the resource, beside the write.
    needs: Callable[[Draft, Resource | None], list[str]] = _nothing_more
    # Paths of stored secrets that the change makes unusable, unless they are given with it.
    unusable: Callable[[Draft, Resource], frozenset[str]] = _all_usable
    leave: Callable[[Connection, Call, Resource], Awaitable[None]] = (
        _free_to_go  # may refuse a delete
    )
    created: Callable[[Connection, Call, Resource], Awaitable[None]] = (
        _alone  # what is written together with a new one
    )
    absent: str = "ResourceNotFound"  # the code of a change of what is not there
    busy: str = "AnotherOperationInProgress"  # the code of a write while an operation runs

    def action(self, verb: str) -> str:
        return f"{self.arm_type}/{verb}"


def take_secrets(
    properties: dict[str, Any], struct: type[Properties], path: str = ""
) -> tuple[dict[str, Any], dict[str, str]]:
    """Parts the write-only values from the rest: nested ones get a dotted path.

    An empty secret counts as none, since clients that read and write back send it so.
    """
    rest, secrets = dict(properties), {}
    for name in struct.WRITE_ONLY & rest.keys():
        value = rest.pop(name)
        if value:
            secrets[path + name] = value
    for name, inner in nested(struct):
        if isinstance(rest.get(name), dict):
            rest[name], inner_secrets = take_secrets(rest[name], inner, f"{path}{name}.")
            secrets |= inner_secrets
    return rest, secrets


def nested(struct: type[Properties]) -> Iterator[tuple[str, type[Properties]]]:
    for info in msgspec.structs.fields(struct):
        for option in getattr(info.type, "__args__", ()):
            if isinstance(option, type) and issubclass(option, Properties):
                yield info.encode_name, option


def merged(old: Any, patch: Any) -> Any:
    """JSON merge-patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
