"""An item of an account: a definition or an execution, as its control database has it."""

from typing import Any

import msgspec


class Item(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    type: str
    name: str
    properties: dict[str, Any]
    row_version: int | None = None  # None: users can't change it
    created_by: str | None = None
    created_at: str | None = None
    modified_by: str | None = None
    modified_at: str | None = None

    @property
    def etag(self) -> str | None:
        return None if self.row_version is None else f'"{self.row_version}"'


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report on an item: an object of its own, perhaps in pages."""

    content: dict[str, Any]
    tag: str | None = None  # the same while nothing moved
    next: str | None = None  # opaque: where the following page begins

    @property
    def etag(self) -> str | None:
        return None if self.tag is None else f'"{self.tag}"'


class WrittenItem(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of PUT."""

    item: Item
    created: bool = False
