"""Models, and how they look on the wire: what a resource has in `properties` is beside its name here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import msgspec

T = TypeVar("T")


class Model(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An object of the wire. Fields that a later server adds are ignored."""


class Resource(Model, kw_only=True):
    """Something with an id, a name and a type."""

    __inside__: ClassVar[frozenset[str]] = frozenset()


def read(shape: type[T], value: Any) -> T:
    """A model from what JSON was decoded to."""
    if isinstance(value, dict) and isinstance(shape, type) and issubclass(shape, Resource):
        value = {**(value.get("properties") or {}), **value}
        value.pop("properties", None)
    return msgspec.convert(value, shape)


def write(value: Any) -> Any:
    """What JSON is encoded from. A mapping is sent as it is, so that it can say null."""
    if isinstance(value, Resource):
        plain = msgspec.to_builtins(value)
        plain.pop("etag", None)  # if_match says it
        inside = {name: plain.pop(name) for name in value.__inside__ if name in plain}
        return {**plain, "properties": inside}
    if isinstance(value, Mapping):
        return {name: write(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [write(each) for each in value]
    return msgspec.to_builtins(value)
