"""Which class has which operation: a scope for what lies below a resource, a group for each kind in it."""

from collections.abc import Iterable
from dataclasses import dataclass

from openapi.sdk import naming
from openapi.sdk.document import Field, Model, Models, Operation, Type, scope

Key = tuple[
    str, tuple[tuple[str, str], ...]
]  # of groups that are one class: name, methods and paths


@dataclass(frozen=True)
class Call:
    """An operation with the part of its path that is below its class."""

    operation: Operation
    path: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each[1:-1] for each in self.path.split("/") if each.startswith("{"))


@dataclass
class Group:
    """A class of operations on one kind of resource: `account.jobs`."""

    name: str  # of the class
    attribute: str
    calls: tuple[Call, ...]


@dataclass
class Scope:
    name: str
    path: str
    calls: tuple[Call, ...]
    groups: tuple[Group, ...]
    inner: tuple["Scope", ...]

    @property
    def segment(self) -> str:
        """What the path has after that of the scope above: `/jobAgents/{jobAgentName}`."""
        return self.path.removeprefix(above(self.path))

    @property
    def client(self) -> str:
        """The name of its class."""
        return self.name if self.name == "Client" else f"{self.name}Client"

    @property
    def noun(self) -> str:
        return naming.snake(self.name)


def above(path: str) -> str:
    return next(each for each in naming.SCOPES if path.startswith(f"{each}/") and path != each)


def scopes(operations: Iterable[Operation]) -> Scope:
    """The client, with all scopes below it."""
    own: dict[str, list[Call]] = {each: [] for each in naming.SCOPES}
    groups: dict[str, dict[str, list[Call]]] = {each: {} for each in naming.SCOPES}
    for each in operations:
        path = scope(each.path)
        if each.group == f"{naming.snake(naming.SCOPES[path])}s" and path:
            if each.method != "create_or_update" and not _in_group(each, path):
                own[path].append(Call(each, each.path.removeprefix(path)))
            if each.path != path and not _in_group(each, path):
                continue
            path = above(path) if each.path == path else path
        rest = Call(each, each.path.removeprefix(path))
        groups[path].setdefault(each.group, []).append(rest)
    classes: dict[Key, str] = {}
    return _scope("", own, groups, classes)


def _in_group(operation: Operation, path: str) -> bool:
    """A list of a scope's own kind further down: servers of a subscription."""
    return operation.path.startswith(f"{path}/providers/")


def _scope(
    path: str,
    own: dict[str, list[Call]],
    groups: dict[str, dict[str, list[Call]]],
    classes: dict[Key, str],
) -> Scope:
    inner = [each for each in naming.SCOPES if each and above(each) == path]
    here = []
    for attribute, calls in groups[path].items():
        key = attribute, tuple((each.operation.method, each.path) for each in calls)
        name = naming.pascal(attribute)
        if key not in classes and name in classes.values():
            name = naming.SCOPES[path] + name
        here.append(Group(classes.setdefault(key, name), attribute, tuple(calls)))
    return Scope(
        naming.SCOPES[path],
        path,
        tuple(own[path]),
        tuple(here),
        tuple(_scope(each, own, groups, classes) for each in reversed(inner)),
    )


def every(top: Scope) -> list[Scope]:
    """The scopes, those below others first."""
    return [one for each in top.inner for one in every(each)] + [top]


def distinct_groups(top: Scope) -> dict[str, Group]:
    return {group.name: group for each in reversed(every(top)) for group in each.groups}


def used(models: Models, operations: Iterable[Operation]) -> tuple[list[Model], list[str]]:
    """The models and words that operations take or give, and what is in them."""
    found: dict[str, Model] = {}
    words: set[str] = set()

    def visit(type: Type | None) -> None:
        while type is not None and type.of is not None:
            type = type.of
        if type is None:
            return
        if type.kind == "words":
            words.add(type.name)
        elif type.kind == "model" and type.name not in found:
            found[type.name] = models.models[type.name]
            for each in found[type.name].fields:
                visit(each.type)

    for operation in operations:
        visit(operation.gives)
        visit(operation.body)
        for parameter in operation.parameters:
            visit(parameter.type)
    return sorted(found.values(), key=lambda each: each.name), sorted(words)


def envelope(field: Field) -> bool:
    """Every resource that is shown has it."""
    return field.wire in {"id", "name", "type"} and field.read_only
