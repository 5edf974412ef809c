"""Every method on every path, derived from the declared types: the table of the whole API."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from api.resource import Action, At, Feed, Query, Report, ResourceType, Verb, View
from api.versions import Versions


class Kind(StrEnum):
    PUT = "put"
    PATCH = "patch"
    GET = "get"
    HEAD = "head"
    DELETE = "delete"
    LIST = "list"
    ACTION = "action"
    REPORT = "report"
    FEED = "feed"
    STATUS = "status"
    RESULT = "result"


@dataclass(frozen=True)
class Segment:
    """A fixed text, or a name: `text` is then the parameter and `names` may close the list."""

    text: str
    is_name: bool = False
    names: tuple[str, ...] = ()
    owner: ResourceType | None = None


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    operation_id: str
    method: str
    kind: Kind
    path: tuple[Segment, ...]
    depth: int  # how many key/name pairs of the path are the id
    type: ResourceType
    action: str  # what authorization is asked for; empty: nothing
    versions: Versions
    verb: Verb | None = None
    act: Action | None = None
    view: View | None = None
    report: Report | None = None
    feed: Feed | None = None
    query: tuple[Query, ...] = field(default=())

    @property
    def paged(self) -> bool:
        return self.kind is Kind.LIST or (self.report is not None and self.report.paged)

    @property
    def waits(self) -> float:
        return sum(each.waits for each in (self.verb, self.act, self.report) if each)

    @cached_property
    def accepted(self) -> dict[str, str]:
        """The query parameters of the operation, by their names in lower case."""
        names = [VERSION, *(each.name for each in self.query)]
        names += [TOP, SKIP_TOKEN] if self.paged else []
        return {name.lower(): name for name in names}

    @cached_property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """The values of those query parameters that list them, by their names."""
        return {
            each.name: tuple(each.schema["enum"]) for each in self.query if "enum" in each.schema
        }

    @property
    def template(self) -> str:
        return "".join(f"/{{{s.text}}}" if s.is_name else f"/{s.text}" for s in self.path)

    def __hash__(self) -> int:
        return hash(self.operation_id)


Path = tuple[Segment, ...]

VERSION, TOP, SKIP_TOKEN = "api-version", "$top", "$skipToken"

SUBSCRIPTION: Path = (Segment("subscriptions"), Segment("subscriptionId", is_name=True))
GROUP: Path = (*SUBSCRIPTION, Segment("resourceGroups"), Segment("resourceGroupName", is_name=True))
PLACES: dict[At, tuple[str, Path]] = {
    At.TENANT: ("Tenant", ()),
    At.SUBSCRIPTION: ("Subscription", SUBSCRIPTION),
    At.GROUP: ("ResourceGroup", GROUP),
}
BY = {"JobAccount": "Agent", "JobTargetExecution": "Target"}  # labels in names of lists
AZURES = {  # Azure's operation ids where the rules below give another
    "ResourceGroups_ListBySubscription": "ResourceGroups_List",
    "Providers_ListBySubscription": "Providers_List",
    "Servers_ListBySubscription": "Servers_List",
    "JobAgents_ListExecutions": "JobExecutions_ListByAgent",
    "Jobs_Start": "JobExecutions_Create",
    "JobVersionSteps_ListByJobVersion": "JobSteps_ListByVersion",
    "JobVersionSteps_Get": "JobSteps_GetByVersion",
    "JobExecutions_ListTargets": "JobTargetExecutions_ListByJobExecution",
    "JobTargetExecutions_ListByJobStepExecution": "JobTargetExecutions_ListByStep",
}


def table(resources: Iterable[ResourceType]) -> tuple[Endpoint, ...]:
    """All endpoints in a stable order; operation ids are unique."""
    resources = tuple(resources)
    endpoints = [
        replace(one, operation_id=AZURES.get(one.operation_id, one.operation_id))
        for kind in resources
        for one in _of_type(kind, resources)
    ]
    ids = [one.operation_id for one in endpoints]
    twice = {one for one in ids if ids.count(one) > 1}
    assert not twice, f"operation ids given twice: {sorted(twice)}"
    return tuple(endpoints)


def _of_type(kind: ResourceType, resources: tuple[ResourceType, ...]) -> Iterator[Endpoint]:
    homes = list(_homes(kind, resources))
    for label, scope in homes:
        suffix = f"At{label}" if len(homes) > 1 else ""
        collection = (*scope, *_collection(kind))
        depth = len(scope) // 2
        if kind.list:
            by = suffix or ("" if label == "Tenant" else f"By{BY.get(label, label)}")
            yield _list(kind, kind.list, by, collection, depth)
        item = (*collection, _name(kind))
        yield from _of_item(kind, suffix, item)
        if not suffix or label == "Tenant":
            yield from _provider_actions(kind)
    for place in kind.also_listed:
        assert kind.list
        label, scope = PLACES[place]
        yield _list(kind, kind.list, f"By{label}", (*scope, *_collection(kind)), len(scope) // 2)
    if kind.polling:
        yield from _polling(kind)


def _homes(kind: ResourceType, resources: tuple[ResourceType, ...]) -> Iterator[tuple[str, Path]]:
    """Where its collection may hang: (label, path of the scope)."""
    if kind.parent is not None:
        yield kind.parent.label, _item(kind.parent, resources)
        return
    for place in kind.at:
        if place is At.ANYWHERE:
            yield from PLACES.values()
            yield from ((each.label, _item(each, resources)) for each in resources if each.tracked)
        else:
            yield PLACES[place]


def _item(kind: ResourceType, resources: tuple[ResourceType, ...]) -> Path:
    """The path of one instance of a type that has one home."""
    ((_, above),) = _homes(kind, resources)
    return (*above, *_collection(kind), _name(kind))


def _collection(kind: ResourceType) -> Path:
    own = tuple(Segment(text) for text in kind.name.split("/"))
    if kind.core or kind.parent is not None:
        return own
    return (*_provider(kind.namespace), *own)


def _provider(namespace: str) -> Path:
    return (Segment("providers"), Segment(namespace))


def _name(kind: ResourceType) -> Segment:
    return Segment(kind.parameter, is_name=True, names=kind.names, owner=kind)


def _list(kind: ResourceType, verb: Verb, by: str, path: Path, depth: int) -> Endpoint:
    return Endpoint(
        operation_id=f"{kind.title}_List{by}",
        method="GET",
        kind=Kind.LIST,
        path=path,
        depth=depth,
        type=kind,
        action="" if verb.open else f"{kind.arm_type}/read",
        versions=kind.versions,
        verb=verb,
        query=verb.query,
    )


VERBS = (
    ("put", "PUT", Kind.PUT, "CreateOrUpdate", "write"),
    ("patch", "PATCH", Kind.PATCH, "Update", "write"),
    ("get", "GET", Kind.GET, "Get", "read"),
    ("head", "HEAD", Kind.HEAD, "CheckExistence", "read"),
    ("delete", "DELETE", Kind.DELETE, "Delete", "delete"),
)


def _of_item(kind: ResourceType, suffix: str, item: Path) -> Iterator[Endpoint]:
    depth = len(item) // 2
    for attribute, method, verb_kind, name, right in VERBS:
        verb: Verb | None = getattr(kind, attribute)
        if verb:
            yield Endpoint(
                operation_id=f"{kind.title}_{name}{suffix}",
                method=method,
                kind=verb_kind,
                path=item,
                depth=depth,
                type=kind,
                action="" if verb.open else f"{kind.arm_type}/{right}",
                versions=kind.versions,
                verb=verb,
                query=verb.query,
            )
    for name, action in kind.actions.items():
        yield _action(kind, name, action, (*item, Segment(name)), depth, kind.arm_type)
    for name, view in kind.views.items():
        yield Endpoint(
            operation_id=f"{kind.title}_{view.title}",
            method="GET",
            kind=Kind.LIST,
            path=(*item, Segment(name), *(Segment(each, is_name=True) for each in view.names)),
            depth=depth,
            type=kind,
            action=f"{kind.arm_type}/read",
            versions=kind.versions,
            view=view,
            verb=Verb(run=view.run),
            query=view.query,
        )
    for name, feed in kind.feeds.items():
        yield _feed(kind, feed, (*item, Segment(name)), depth)
    for name, report in kind.reports.items():
        yield Endpoint(
            operation_id=f"{kind.title}_{report.title}",
            method="GET",
            kind=Kind.REPORT,
            path=(*item, Segment(name)),
            depth=depth,
            type=kind,
            action=f"{kind.arm_type}/read",
            versions=kind.versions,
            report=report,
            query=report.query,
        )


def _feed(kind: ResourceType, feed: Feed, path: Path, depth: int) -> Endpoint:
    return Endpoint(
        operation_id=f"{kind.title}_{feed.title}",
        method="GET",
        kind=Kind.FEED,
        path=path,
        depth=depth,
        type=kind,
        action=f"{kind.arm_type}/read",
        versions=kind.versions,
        feed=feed,
        query=feed.query,
    )


def _provider_actions(kind: ResourceType) -> Iterator[Endpoint]:
    for name, action in kind.provider_actions.items():
        path = (*SUBSCRIPTION, *_provider(kind.namespace), Segment(name))
        yield _action(kind, name, action, path, 1, kind.namespace)


def _action(
    kind: ResourceType, name: str, action: Action, path: Path, depth: int, right: str
) -> Endpoint:
    return Endpoint(
        operation_id=f"{kind.title}_{action.title}",
        method=action.method,
        kind=Kind.ACTION,
        path=path,
        depth=depth,
        type=kind,
        action=f"{right}/{name}/action" if action.method == "POST" else f"{right}/write",
        versions=kind.versions,
        act=action,
        query=action.query,
    )


def _polling(kind: ResourceType) -> Iterator[Endpoint]:
    polling = kind.polling
    assert polling
    place = (
        *SUBSCRIPTION,
        *_provider(kind.namespace),
        Segment("locations"),
        Segment("locationName", is_name=True),
    )
    for verb_kind, segment, name in (
        (Kind.STATUS, polling.status, "Status"),
        (Kind.RESULT, polling.result, "Result"),
    ):
        yield Endpoint(
            operation_id=f"{polling.title}_Get{name}",
            method="GET",
            kind=verb_kind,
            path=(*place, Segment(segment), Segment("operationId", is_name=True)),
            depth=4,
            type=kind,
            action="",
            versions=polling.versions,
        )
