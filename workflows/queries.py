"""Queries over targets: runs of the system job `adhoc`, rolled back unless they may write."""

from typing import Any

from muster.core import script_reader
from muster.core.errors import FieldError, NotFound, refuse
from muster.core.ids import ResourceId
from nodeagent import items as wire
from nodeagent.items import GetItem, RunQuery
from workflows import (
    access,
    authorization,
    executions,
    items,
    references,
    run_targets,
    target_servers,
)
from workflows.model.account import ACCOUNT
from workflows.model.item import Item
from workflows.model.resource import Call
from workflows.references import Reference
from workflows.services import Services
from workflows.validation import common
from workflows.validation.query import query as validate

ADHOC = ("jobs", "adhoc")
KINDS: dict[str, wire.Kind] = {"targetGroup": "targetGroups", "credential": "credentials"}
TIMEOUT = 60
MOST_ROWS = 1000


async def run(services: Services, call: Call, id: ResourceId, body: dict[str, Any]) -> Item:
    """A repeated request gets the execution of the first one."""
    read_only = body.get("readOnly", True)
    await authorization.authorize(services, call, f"{ACCOUNT}/jobs/start/action", id.child(ADHOC))
    if not read_only or body.get("credential"):
        await authorization.authorize(services, call, f"{ACCOUNT}/jobs/write", id.child(ADHOC))
    here = await items.enter(services, call, id)
    named = {"targetGroup": body["targetGroup"]} if "targetGroup" in body else {}
    if body.get("credential"):
        named["credential"] = body["credential"]
    analysis = await script_reader.analyse(body["sql"], caller=items.who(call))
    wrong = validate(body, analysis)
    wrong += await references.check(services, call, id, _references(named))
    wrong += [error for field, text in named.items() for error in _name(field, text)]
    refuse(wrong)
    resolved = {
        field: await _find(services, call, id, field, text) for field, text in named.items()
    }
    if "targets" in body:
        await run_targets.check(services, call, id, here, body["targets"])
    else:
        group = resolved["targetGroup"].name
        await target_servers.check_reached(
            services, call, id, "targetGroups", [group], "targetGroup"
        )
    names = {field: {"name": each.name} for field, each in resolved.items()}
    command = RunQuery(document=_document(body, read_only=read_only) | names)
    action = f"{ACCOUNT}/queries/action"
    with run_targets.unlisted_server_explained():
        written = await items.write(services, call, id, here, action, command)
    return executions.FAMILY.item(written.item, here)


def _document(body: dict[str, Any], *, read_only: bool) -> dict[str, Any]:
    overrides: dict[str, Any] = {"maxRows": body.get("maxRows", MOST_ROWS)}
    if read_only:
        overrides["rollback"] = True
    return {
        "script": body["sql"],
        "timeoutSeconds": body.get("timeoutSeconds", TIMEOUT),
        "options": {"settings": {"access": "readOnly" if read_only else "readWrite"}},
        "overrides": overrides,
        **{name: body[name] for name in ("targets", "limit") if name in body},
    }


def _references(named: dict[str, str]) -> list[Reference]:
    return [
        Reference(field, text, KINDS[field]) for field, text in named.items() if text[:1] == "/"
    ]


def _name(field: str, text: str) -> list[FieldError]:
    problem = None if text[:1] == "/" else common.generic(text)
    return [FieldError(field, problem)] if problem else []


async def _find(services: Services, call: Call, id: ResourceId, field: str, text: str) -> wire.Item:
    name = ResourceId.parse(text).name if text[:1] == "/" else text
    try:
        return await _item(services, call, id, KINDS[field], name)
    except NotFound as absent:
        refuse([FieldError(field, absent.message)])
        raise


async def _item(
    services: Services, call: Call, id: ResourceId, kind: wire.Kind, name: str
) -> wire.Item:
    item: wire.Item = await access.look(services, call, id, GetItem(kind=kind, path=(name,)))
    return item
