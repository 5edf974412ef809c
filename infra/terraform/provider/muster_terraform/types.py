"""A resource type: where it is in the API, its attributes, and how it is read and written."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from muster_terraform.api import Api
from muster_terraform.attributes import STRING, Attribute, Document, State, field, named

Finding = tuple[str, list[str | int]]  # a message, and where in the configuration


@dataclass(frozen=True)
class ResourceType:
    name: str
    collection: str  # the part of the id between parent and name
    parent: str  # attribute with the id of what it belongs to
    attributes: tuple[Attribute, ...]  # all but id, parent and name
    about: str
    in_account: bool = False  # without a parent it belongs to the account of the provider
    makes_name: bool = False  # without a name it gets a new one

    @property
    def full_name(self) -> str:
        return f"muster_{self.name}"

    @cached_property
    def complete(self) -> tuple[Attribute, ...]:
        about = f"Id of what the {self.name.replace('_', ' ')} belongs to."
        parent, name = (
            named(self.parent, about),
            named("name", "Its name; another one replaces it."),
        )
        if self.in_account:
            parent = _optional(parent, f"{about} Default: the account of the provider.")
        if self.makes_name:
            name = _optional(name, "A GUID; a new one is made when none is given.")
        identity = field(
            "id", optional=False, computed=True, settled=True, about="The resource id."
        )
        return (identity, parent, name, *self.attributes)

    def id_of(self, state: State) -> str:
        return f"{state[self.parent].rstrip('/')}/{self.collection}/{state['name']}"

    def parts(self, id: str) -> State | None:
        """Parent and name of an id; None when it is the id of something else."""
        found = re.fullmatch(
            f"(.*)/{re.escape(self.collection)}/([^/]+)", id.rstrip("/"), re.IGNORECASE
        )
        if found is None or (self.in_account and "/jobagents/" not in id.lower()):
            return None
        return {self.parent: found[1] or "/", "name": found[2]}

    def example_id(self) -> str:
        return f"…/{self.collection}/NAME"

    def findings(self, config: State) -> list[Finding]:
        """What no choice of an attribute tells."""
        del config
        return []

    def fetch(self, api: Api, id: str) -> Document | None:
        return api.find(id)

    def save(self, api: Api, id: str, document: Document, *, new: bool, etag: str | None) -> None:
        api.put(id, document, new=new, etag=etag)

    def remove(self, api: Api, id: str) -> None:
        api.delete(id)


def _optional(attribute: Attribute, about: str) -> Attribute:
    values: dict[str, Any] = {**attribute.__dict__, "about": about}
    values |= {"required": False, "optional": True, "computed": True}
    return Attribute(**values)


TAGS = field("tags", '["map","string"]', blank={}, about="At most 50.")


def location(default: str | None) -> Attribute:
    """Fixed at creation."""
    about = "Fixed at creation."
    if default is None:
        about += " Default: that of the server."
    return field(
        "location", STRING, default=default, computed=default is None, replace=True, about=about
    )
