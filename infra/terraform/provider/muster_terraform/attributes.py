"""What an attribute is called here and in the API; schemas, plans and requests follow from these tables."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

State: TypeAlias = dict[str, Any]
Document: TypeAlias = dict[str, Any]


class _Unknown:
    """A value that Terraform learns during apply."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()

STRING = '"string"'
NUMBER = '"number"'
BOOL = '"bool"'
STRINGS = '["list","string"]'
NUMBERS = '["list","number"]'
TEXTS = '["map","string"]'  # texts by name


@dataclass(frozen=True)
class Nested:
    """A block with attributes of its own, or a list of them. Terraform refuses a word that a block does not have."""

    attributes: tuple["Attribute", ...]
    many: bool = False


Kind: TypeAlias = str | Nested


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, kw_only=True)
class Attribute:
    name: str
    kind: Kind
    path: tuple[str, ...] | None  # in the API's document; None = it is not there
    required: bool = False
    optional: bool = True
    computed: bool = False  # known after apply when the configuration says nothing
    settled: bool = False  # of what the API alone decides: an update does not change it
    default: Any = None  # what the API does when nothing is said
    blank: Any = None  # how the API shows that nothing was said
    replace: bool = False  # another value needs another resource
    write_only: bool = False
    version: str = ""  # of a write-only attribute: the one whose change sends it again
    sensitive: bool = False
    choices: tuple[str, ...] = ()
    read: Callable[[Any], Any] = _same  # the API's form → Terraform's
    write: Callable[[Any], Any] = _same  # and back
    about: str = ""

    @property
    def only_computed(self) -> bool:
        return self.computed and not self.optional and not self.required


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def field(name: str, kind: Kind = STRING, *, at: str = "", **more: Any) -> Attribute:
    """In the object itself; `at` is a dotted path where the name says something else."""
    path = tuple((at or camel(name)).split("."))
    return Attribute(name=name, kind=kind, path=path, **more)


def prop(name: str, kind: Kind = STRING, *, at: str = "", **more: Any) -> Attribute:
    """In the `properties` of the object."""
    return field(name, kind, at=f"properties.{at or camel(name)}", **more)


def shown(name: str, kind: Kind = STRING, **more: Any) -> Attribute:
    """A property that the API alone decides."""
    return prop(name, kind, optional=False, computed=True, **more)


def secret(name: str, version: str, *, make: Any = prop, at: str, about: str) -> Attribute:
    """Never in a plan or a state."""
    return make(name, at=at, write_only=True, version=version, sensitive=True, about=about)  # type: ignore[no-any-return]


def version_of(name: str, secret_name: str) -> Attribute:
    about = f"Any number; another one sends `{secret_name}` again."
    return Attribute(name=name, kind=NUMBER, path=None, about=about)


def named(name: str, about: str) -> Attribute:
    """What makes the id: it is in no document, and another one is another resource."""
    return Attribute(
        name=name, kind=STRING, path=None, required=True, optional=False, replace=True, about=about
    )
