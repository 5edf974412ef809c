"""How a resource type is declared: one declaration, from which routes, checks and docs follow."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from api.versions import OPERATIONS, Versions
from workflows.model.wire import Properties

UseCase = Callable[..., Awaitable[Any]]
Example = Mapping[str, Any]


class At(StrEnum):
    """Where the instances of a type that has no parent are found."""

    TENANT = "tenant"
    SUBSCRIPTION = "subscription"
    GROUP = "group"
    ANYWHERE = "anywhere"  # an extension: on the tenant and on every resource


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query parameter that a use case reads from `Call.query`."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, kw_only=True)
class Verb:
    run: UseCase
    long: bool = False  # answered before it is done; a client polls
    query: tuple[Query, ...] = ()
    open: bool = False  # every authenticated caller may ask; the use case shows what he may see
    waits: float = 0  # seconds that it may wait for others, beyond the limit of every request


def Sync(  # noqa: N802
    run: UseCase, *, query: tuple[Query, ...] = (), open: bool = False, waits: float = 0
) -> Verb:
    return Verb(run=run, query=query, open=open, waits=waits)


def Async(run: UseCase, *, query: tuple[Query, ...] = (), waits: float = 0) -> Verb:  # noqa: N802
    return Verb(run=run, long=True, query=query, waits=waits)


@dataclass(frozen=True, kw_only=True)
class Action:
    """POST {resource}/{name}: takes an object or nothing, gives an object.

    With `method` PUT it replaces a part of the resource, which has the resource's ETag.
    """

    run: UseCase
    title: str
    method: str = "POST"
    takes: type[Properties] | None = None
    gives: Mapping[str, Any] | None = field(
        default_factory=lambda: {"type": "object"}
    )  # JSON schema; None: an empty answer
    makes: str = ""  # label of the type of child that the answer shows
    makes_in: Mapping[str, str] = field(default_factory=dict)  # names in its path beside ours
    urgent: bool = False  # stops something: no limit of requests holds it up
    requires_body: bool = False
    waits: float = 0  # seconds that it may wait for others, beyond the limit of every request
    query: tuple[Query, ...] = ()
    example: Example = field(default_factory=dict)
    answer: Example = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class View:
    """GET {resource}/{name}: a paged list that belongs to one resource.

    `names` follow in the path; the use case reads them from `Call.query`.
    """

    run: UseCase
    title: str
    item: Mapping[str, Any]  # JSON schema of one element
    example: Example
    query: tuple[Query, ...] = ()
    names: tuple[str, ...] = ()
    inside: bool = False  # its elements lie in the job account


@dataclass(frozen=True, kw_only=True)
class Report:
    """GET {resource}/{name}: one object that reports on a resource."""

    run: UseCase
    title: str
    gives: Mapping[str, Any]  # JSON schema
    example: Example
    query: tuple[Query, ...] = ()
    paged: bool = False  # part by part, each with the link to the next
    tagged: bool = False  # has an ETag: a client that polls gets 304 while nothing changes
    rows: UseCase | None = None  # the same as rows, for CSV and NDJSON
    waits: float = 0  # seconds that it may take beyond the limit of every request


@dataclass(frozen=True, kw_only=True)
class Feed:
    """GET {resource}/{name}: server-sent events; `run` reads those after a position."""

    run: UseCase
    title: str
    example: str
    query: tuple[Query, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Polling:
    """The two kinds of URL under which the operations of a type are followed."""

    status: str
    result: str
    title: str
    versions: Versions = OPERATIONS


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What of ARM's envelope a type has beside id, name, type and properties."""

    location: bool = False
    tags: bool = False
    sku: bool = False
    identity: bool = False


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    name: str  # the fixed segment
    namespace: str
    title: str  # first half of every operation id
    singular: str  # how prose calls one of them
    parameter: str  # what OpenAPI calls the name in the path
    versions: Versions
    example: Example  # a body of PUT; for read-only types an element as it is shown
    name_example: str
    patch_example: Example = field(default_factory=lambda: {"tags": {"stage": "test"}})
    shown_example: Example = field(default_factory=dict)  # read-only properties beside them
    properties: type[Properties] | None = None  # None: shown as the use case gives it
    item: Mapping[str, Any] | None = None  # JSON schema of such an element
    observed: Mapping[str, Any] = field(default_factory=dict)  # schemas of read-only properties
    parent: "ResourceType | None" = None
    at: tuple[At, ...] = ()
    core: bool = False  # no /providers/{namespace} in front of the segment
    flat: bool = False  # the properties stand at the top of the body
    bodiless: bool = False  # PUT needs no body: the URL has all that is needed
    parts: Parts = Parts()
    pattern: str = r"^[^/]{1,260}$"  # of the name: shape only, meaning is the workflows' business
    names: tuple[str, ...] = ()  # a closed list of names
    put: Verb | None = None
    patch: Verb | None = None
    get: Verb | None = None
    head: Verb | None = None
    delete: Verb | None = None
    list: Verb | None = None
    also_listed: tuple[At, ...] = ()  # scopes above its own where all of them can be listed
    actions: Mapping[str, Action] = field(default_factory=dict)
    provider_actions: Mapping[str, Action] = field(default_factory=dict)  # at the subscription
    views: Mapping[str, View] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)
    feeds: Mapping[str, Feed] = field(default_factory=dict)
    polling: Polling | None = None

    @cached_property
    def arm_type(self) -> str:
        if self.parent is not None:
            return f"{self.parent.arm_type}/{self.name}"
        return f"{self.namespace}/{self.name}"

    @cached_property
    def label(self) -> str:
        """One of them in names of operations and schemas: `ElasticPool`."""
        return self.singular.title().replace(" ", "")

    @cached_property
    def tracked(self) -> bool:
        """A resource in a group, with a place of its own: extensions can be attached to it."""
        return self.parts.location and not self.core

    @cached_property
    def inside(self) -> bool:
        """Lies in a job account: its control database has it, and says what is shown."""
        return self.parent is not None and (self.parent.name == "jobAgents" or self.parent.inside)

    @cached_property
    def versioned(self) -> bool:
        """Whether one of them has an ETag."""
        if self.inside:
            return self.put is not None and not self.bodiless
        return self.properties is not None

    @cached_property
    def visible(self) -> frozenset[str]:
        """Names of properties that may be shown."""
        if self.properties is None:
            return frozenset()
        return frozenset(self.properties.__struct_encode_fields__) - self.properties.WRITE_ONLY

    def __hash__(self) -> int:
        return hash(self.arm_type)
