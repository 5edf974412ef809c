"""What would have to be written, so that an account is as the files state it."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from muster.cli import names
from muster.cli.client import Api, Refused, under
from muster.cli.declared import compare
from muster.cli.declared.document import Document, SecretSource, Step, Wrong
from muster.cli.declared.kinds import JOB, KINDS, STEP, TARGET_GROUP, Kind
from muster.cli.exits import Exit

PARALLEL = 8  # requests at once


@dataclass(frozen=True)
class Current:
    """What the account has, and the ETag of what was compared."""

    name: str
    properties: dict[str, Any]
    etag: str
    steps: list[dict[str, Any]] = field(default_factory=list)  # of a job


@dataclass(frozen=True)
class Change:
    document: Document
    account: str
    current: Current | None  # None: it is created
    compared: dict[str, Any]  # the properties that count as those of the account
    before: dict[str, Any]  # as far as the file states it
    after: dict[str, Any]
    secret: SecretSource | None  # that is sent

    @property
    def path(self) -> str:
        return under(self.account, self.document.kind.collection, self.name)

    @property
    def name(self) -> str:
        return self.current.name if self.current else self.document.name

    @property
    def action(self) -> str:
        if self.current is None:
            return "create"
        return "unchanged" if self.before == self.after else "update"


@dataclass(frozen=True)
class Removal:
    """What no file states and is deleted."""

    document: Document  # as the account has it
    account: str
    etag: str
    before: dict[str, Any]

    action = "delete"

    @property
    def after(self) -> dict[str, Any]:
        return {}

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def path(self) -> str:
        return under(self.account, self.document.kind.collection, self.name)


def plan(
    api: Api, account: str, documents: list[Document], *, update_secrets: bool = False
) -> list[Change]:
    """In the order of the writes: what is named comes before what names it."""
    api.get(account)  # its absence is not that of everything in it
    documents = in_order(documents, account)
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = list(pool.map(lambda each: current(api, account, each.kind, each.name), documents))
    made = [
        _change(account, each, there, update_secrets=update_secrets)
        for each, there in zip(documents, found, strict=True)
    ]
    problems = [problem for each in made for problem in _incomplete(each)]
    problems += _dangling(api, account, documents)
    if problems:
        raise Wrong(problems)
    return made


def current(api: Api, account: str, kind: Kind, name: str) -> Current | None:
    path = under(account, kind.collection, name)
    try:
        item = api.latest(path)
    except Refused as refused:
        if refused.code != Exit.NOT_FOUND:
            raise
        return None
    steps = api.all(f"{path}/steps") if kind is JOB else []
    return Current(item["name"], item.get("properties") or {}, api.seen_etag(path), steps)


def in_order(documents: list[Document], account: str) -> list[Document]:
    """By kind; a group after those that are its members. The API refuses a circle."""
    groups = {each.name.lower(): each for each in documents if each.kind is TARGET_GROUP}
    ordered: dict[str, Document] = {}

    def visit(document: Document, above: frozenset[str]) -> None:
        name = document.name.lower()
        if name in ordered or name in above:
            return
        for _, collection, member in _references(document, account):
            if collection == TARGET_GROUP.collection and member.lower() in groups:
                visit(groups[member.lower()], above | {name})
        ordered[name] = document

    for each in groups.values():
        visit(each, frozenset())
    by_kind = {kind: [each for each in documents if each.kind.name == kind] for kind in KINDS}
    by_kind[TARGET_GROUP.name] = list(ordered.values())
    return [each for kind in KINDS for each in by_kind[kind]]


def exported(kind: Kind, item: Current, account: str) -> dict[str, Any]:
    """Everything that can be stated of it."""
    document = _whole(kind.properties, item.properties, account)
    if kind is JOB:
        document["steps"] = [_whole_step(each, account) for each in item.steps]
    return {"kind": kind.name, "name": item.name, **document}


def _change(
    account: str, document: Document, there: Current | None, *, update_secrets: bool
) -> Change:
    head = {"kind": document.kind.name, "name": there.name if there else document.name}
    has = _comparable(document, there.properties) if there else {}
    fields = document.kind.properties
    stated = compare.plainly(fields, document.properties, account)
    before, after = compare.shown(fields, stated, compare.plainly(fields, has, account))
    if document.steps is not None:
        steps = there.steps if there else []
        before["steps"], after["steps"] = _steps(document.steps, steps, account)
    if document.secret and there and has.get("reference"):
        before["reference"] = has["reference"]  # the password takes its place
    secret = document.secret
    if secret and (there is None or update_secrets or before != after):
        after[secret.field] = secret.text
    else:
        secret = None
    return Change(
        document=document,
        account=account,
        current=there,
        compared=has,
        before={**head, **before} if there else {},
        after={**head, **after},
        secret=secret,
    )


def _comparable(document: Document, has: dict[str, Any]) -> dict[str, Any]:
    """A schedule of type Once disables itself when it has started the job; enabling it would start it again."""
    stated = document.properties.get("schedule") or {}
    schedule = has.get("schedule") or {}
    is_once = stated.get("type", "Once") == schedule.get("type") == "Once"
    if not (is_once and stated.get("enabled") and stated.get("startTime")):
        return has
    same = {name: stated[name] for name in ("type", "startTime") if name in stated}
    fields = document.kind.properties.fields["schedule"]
    if compare.differs(fields, *(compare.plainly(fields, each, "") for each in (same, schedule))):
        return has
    return {**has, "schedule": {**schedule, "enabled": True}}


def _steps(
    stated: Iterable[Step], there: list[dict[str, Any]], account: str
) -> tuple[list[Any], list[Any]]:
    """The list is whole: a step that is not stated is removed."""
    wanted = {step.name.lower(): step for step in stated}
    has = {each["name"].lower(): each for each in there}
    before, after = {}, []
    for key, step in wanted.items():
        item = has.get(key)
        plain = compare.plainly(STEP, step.properties, account)
        actual = compare.plainly(STEP, item["properties"], account) if item else {}
        old, new = compare.shown(STEP, plain, actual)
        name = item["name"] if item else step.name
        before[key] = {"name": name, **old}
        after.append({"name": name, **new})
    return [before.get(key) or _whole_step(each, account) for key, each in has.items()], after


def _whole(fields: Any, properties: dict[str, Any], account: str) -> dict[str, Any]:
    plain = compare.plainly(fields, properties, account)
    whole: dict[str, Any] = compare.shown(fields, plain, plain)[1]
    return whole


def _whole_step(item: dict[str, Any], account: str) -> dict[str, Any]:
    return {"name": item["name"], **_whole(STEP, item["properties"], account)}


def _incomplete(change: Change) -> list[str]:
    """What is created needs what REST needs."""
    document = change.document
    absent = []
    if change.current is None:
        absent = compare.missing(document.kind.properties, document.properties)
    for at, step in enumerate(document.steps or ()):
        there = change.current.steps if change.current else []
        if step.name.lower() not in {each["name"].lower() for each in there}:
            absent += compare.missing(STEP, step.properties, f"steps[{at}].")
    return [f"{document.place(each)}: {each}: it is missing" for each in absent]


def _references(document: Document, account: str) -> list[tuple[str, str, str]]:
    found = compare.references(document.kind.properties, document.properties, "", account)
    for at, step in enumerate(document.steps or ()):
        found += compare.references(STEP, step.properties, f"steps[{at}]", account)
    return found


def _dangling(api: Api, account: str, documents: list[Document]) -> list[str]:
    """References to what is neither stated nor there."""
    stated = {(each.kind.collection, each.name.lower()) for each in documents}
    is_there: dict[tuple[str, str], bool] = {}
    problems = []
    for document in documents:
        for path, collection, name in _references(document, account):
            key = collection, name.lower()
            if key in stated:
                continue
            if key not in is_there:
                is_there[key] = api.find(under(account, collection, name)) is not None
            if not is_there[key]:
                known = [each["name"] for each in api.all(f"{account}/{collection}")]
                known += [each.name for each in documents if each.kind.collection == collection]
                what = f"there is no {names.KINDS[collection]} '{name}' in the account or the files"
                problems.append(f"{document.place(path)}: {path}: {what}{names.near(name, known)}")
    return problems
