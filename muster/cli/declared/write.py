"""Writes what a plan says; what was changed since it was compared is refused, and nothing of it is written."""

from typing import Any

from muster.cli.client import Api, Refused
from muster.cli.declared import compare
from muster.cli.declared.document import Document
from muster.cli.declared.kinds import CREDENTIALS, JOB, MARK, STEP
from muster.cli.declared.plan import Change, Current, Removal

CHANGED_MEANWHILE = {"PreconditionFailed", "Exists"}


def write(api: Api, change: Change) -> None:
    """One request: it takes effect as a whole or not at all."""
    document, current, account = change.document, change.current, change.account
    secret = {document.kind.secret: change.secret.read()} if change.secret else {}
    try:
        if current is None:
            properties = {**_created(document, account), **secret}
            api.put(change.path, {"properties": properties}, new=True)
        elif document.kind is JOB:
            properties = _job_patch(change, current)
            api.patch(change.path, {"properties": properties}, etag=current.etag)
        else:
            properties = {**_replaced(document, current, account), **secret}
            api.put(change.path, {"properties": properties}, etag=current.etag)
    except Refused as refused:
        raise _with_place(document, refused) from refused


def remove(api: Api, removal: Removal) -> None:
    try:
        api.delete(removal.path, etag=removal.etag)
    except Refused as refused:
        raise _explained(removal.document.title, refused) from refused


def _created(document: Document, account: str) -> dict[str, Any]:
    fields = document.kind.properties
    stated = compare.without_nulls(document.properties)
    properties: dict[str, Any] = compare.for_rest(fields, stated, account)
    if document.kind is JOB:
        properties["labels"] = {**properties.get("labels", {}), MARK: "true"}
        properties["steps"] = _steps(document, [], account)
    return properties


def _job_patch(change: Change, current: Current) -> dict[str, Any]:
    """Only what differs; the steps as a whole, so that they make one version."""
    document = change.document
    properties: dict[str, Any] = compare.patch(
        JOB.properties, document.properties, change.compared, change.account
    )
    if change.before.get("steps") != change.after.get("steps"):
        properties["steps"] = _steps(document, current.steps, change.account)
    return properties


def _steps(document: Document, there: list[dict[str, Any]], account: str) -> list[dict[str, Any]]:
    """What the file does not state of a step stays as it is."""
    has = {each["name"].lower(): each["properties"] for each in there}
    return [
        {
            "name": step.name,
            **compare.for_rest(
                STEP, compare.merged(STEP, step.properties, has.get(step.name.lower(), {})), account
            ),
        }
        for step in document.steps or ()
    ]


def _replaced(document: Document, current: Current, account: str) -> dict[str, Any]:
    """Of a credential the API itself keeps what the request leaves out."""
    kept = ("username",) if document.kind is CREDENTIALS else document.kind.properties.fields
    base = {name: current.properties[name] for name in kept if name in current.properties}
    stated = compare.for_rest(document.kind.properties, document.properties, account)
    return {**base, **stated}


def _with_place(document: Document, refused: Refused) -> Refused:
    """With file and line of the field that the API names."""
    place = document.place(refused.field.removeprefix("properties."))
    return _explained(f"{place}: {document.title}", refused)


def _explained(what: str, refused: Refused) -> Refused:
    if refused.error in CHANGED_MEANWHILE:
        return Refused(
            f"{what} was changed since it was compared, and is left as it is now: "
            "muster diff shows it"
        )
    return Refused(
        f"{what}: {refused.message}",
        refused.code,
        error=refused.error,
        field=refused.field,
        path=refused.path,
    )
