"""Steps of a job; each change of one creates a new version of the job."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from muster.core import script_reader, verify_query
from muster.core.errors import FieldError, refuse
from muster.core.ids import ResourceId
from nodeagent.items import PutStep
from workflows import items, references, target_servers
from workflows.access import account_of, path_of
from workflows.accesscache import Access
from workflows.items import Family, present
from workflows.model.item import WrittenItem
from workflows.model.resource import Body, Call
from workflows.model.step import StepOfJob, StepProperties
from workflows.references import Reference
from workflows.resource_kind import merged
from workflows.services import Services
from workflows.target_servers import ServerName
from workflows.validation.complete import complete
from workflows.validation.step import step as validate
from workflows.validation.step import unguarded

GROUPS, CREDENTIALS = "targetGroups", "credentials"
OPTIONS = (
    "transaction",
    "settings",
    "advance",
    "onFailure",
    "rollout",
    "verify",
    "guard",
    "idempotent",
    "retryOn",
    "allowEmpty",
    "slotsPerDatabase",
    "jitter",
)
MOST_STEPS = 100
OUTPUT_OPTIONS = ("includeTarget", "onMismatch")


def shown(properties: dict[str, Any], here: Access) -> dict[str, Any]:
    document = present(properties)
    options = document.pop("options", {})
    document["targetGroup"] = references.shown(document["targetGroup"], GROUPS, here)
    if "credential" in document:
        document["credential"] = references.shown(document["credential"], CREDENTIALS, here)
    document["action"] = {"type": "TSql", "source": "Inline", "value": document.pop("script")}
    if "output" in document:
        output = {**document["output"], **options.pop("output", {})}
        if "credential" in output:
            output["credential"] = references.shown(output["credential"], CREDENTIALS, here)
        document["output"] = output
    return {**document, **options}


FAMILY = Family("jobs/steps", shown)
OF_VERSION = Family("jobs/versions/steps", shown)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    here = await items.enter(services, call, id)
    properties = body.properties
    await _check(services, call, id, here, properties)
    job, name = path_of(id)
    command = PutStep(
        job=job, name=name, document=document(properties), condition=items.condition(call)
    )
    return await FAMILY.put(services, call, id, here, command)


async def patch(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Merge-patch: what is not named stays as it is; a change makes a new version of the job."""
    here = await items.enter(services, call, id)
    current = shown((await FAMILY.raw(services, call, id)).properties, here)
    properties = merged(current, body.properties)
    refuse(complete(StepProperties, properties))
    await _check(services, call, id, here, properties)
    return await FAMILY.patch(services, call, id, here, patch_document(body.properties))


async def of_job(
    services: Services, call: Call, id: ResourceId, here: Access, steps: list[dict[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """Checks all steps of a job; as the control database takes them."""
    await target_servers.demand(services, call, FAMILY.action("write"), id, account_of(id))
    if len(steps) > MOST_STEPS:
        refuse([FieldError("properties.steps", f"A job has at most {MOST_STEPS} steps.")])
    names: set[str] = set()
    errors: list[FieldError] = []
    for at, properties in enumerate(steps):
        where = f"properties.steps[{at}]"
        errors += complete(StepOfJob, properties, where)
        name = (properties.get("name") or "").lower()
        if name in names:
            errors.append(FieldError(f"{where}.name", f"'{name[:50]}' is the name of two steps."))
        names.add(name)
    refuse(errors)
    servers: set[str] = set()
    for at, properties in enumerate(steps):
        step = id.child(("steps", properties["name"]))
        found, named = await _problems(services, call, step, properties)
        errors += [_inside(each, f"properties.steps[{at}]") for each in found]
        servers |= named
    refuse(errors)
    groups: dict[str, str] = {}  # of each group, the first step that names it
    for at, properties in enumerate(steps):
        groups.setdefault(_group(properties).lower(), f"properties.steps[{at}].targetGroup")
    for group, where in groups.items():
        await target_servers.check_reached(services, call, id, "targetGroups", [group], where)
    await target_servers.allow(services, call, here, servers)
    return tuple({**document(each), "name": each["name"]} for each in steps)


def _inside(error: FieldError, where: str) -> FieldError:
    """The same with the place of the step in the list."""
    return replace(error, target=f"{where}.{error.target.removeprefix('properties.')}")


async def _check(
    services: Services, call: Call, id: ResourceId, here: Access, properties: dict[str, Any]
) -> None:
    """The servers of the group become targets of the script, so the caller must be allowed to use them."""
    errors, servers = await _problems(services, call, id, properties)
    refuse(errors)
    where = "properties.targetGroup"
    group = _group(properties)
    await target_servers.check_reached(services, call, id, "targetGroups", [group], where)
    await target_servers.allow(services, call, here, servers)


def _group(properties: dict[str, Any]) -> str:
    return ResourceId.parse(properties["targetGroup"]).name


async def _problems(
    services: Services, call: Call, id: ResourceId, properties: dict[str, Any]
) -> tuple[list[FieldError], set[str]]:
    """And the uids of the servers that it names."""
    account = account_of(id)
    named = await target_servers.check_named(services, call, account, _servers(properties))
    errors = [
        *validate(id.name, properties),
        *await _script(call, properties),
        *await references.check(services, call, account, _references(properties)),
        *named.errors,
    ]
    return errors, named.servers


def patch_document(patch: dict[str, Any]) -> dict[str, Any]:
    """A merge-patch of `document`; null removes."""
    same = ("stepId", "executionOptions")
    made: dict[str, Any] = {name: patch[name] for name in same if name in patch}
    for name in ("targetGroup", "credential"):
        if name in patch:
            made[name] = references.document(patch[name])
    if (action := patch.get("action")) and "value" in action:
        made["script"] = action["value"]
    options = {name: patch[name] for name in OPTIONS if name in patch}
    if "output" in patch:
        made["output"], more = _output(patch["output"])
        if more != {}:
            options["output"] = more
    return made | ({"options": options} if options else {})


def document(properties: dict[str, Any]) -> dict[str, Any]:
    """As the control database takes it; an empty reference is none."""
    made: dict[str, Any] = {
        "targetGroup": references.document(properties["targetGroup"]),
        "credential": references.document(properties.get("credential")),
        "script": properties["action"]["value"],
        "executionOptions": properties.get("executionOptions") or {},
        "output": None,
        "options": {name: properties[name] for name in OPTIONS if name in properties},
    }
    if "stepId" in properties:
        made["stepId"] = properties["stepId"]
    if output := properties.get("output"):
        place, more = _output(output)
        if more:
            made["options"]["output"] = more
        made["output"] = {"type": "SqlDatabase", "schemaName": "dbo", "credential": None, **place}
    return made


def _output(output: dict[str, Any] | None) -> tuple[Any, Any]:
    """The columns of the step and its options; both null: no output."""
    if output is None:
        return None, None
    more = {name: output[name] for name in OUTPUT_OPTIONS if name in output}
    place = {name: value for name, value in output.items() if name not in more}
    if "credential" in place:
        place["credential"] = references.document(place["credential"])
    return place, more


async def _script(call: Call, properties: dict[str, Any]) -> list[FieldError]:
    text, transaction = properties["action"]["value"], properties.get("transaction", "auto")
    analysis = await script_reader.analyse(text, transaction, items.who(call))
    errors = [problem.error("properties.action.value") for problem in analysis.problems]
    if properties.get("guard") and transaction == "auto" and analysis.script.autocommit:
        errors.append(unguarded())
    sql = (properties.get("verify") or {}).get("sql", "")
    if sql.strip():  # an empty one is refused by its shape
        query = await script_reader.analyse(sql, "auto", items.who(call))
        errors += [each.error("properties.verify.sql") for each in verify_query.problems(query)]
    return errors


def _references(properties: dict[str, Any]) -> Iterator[Reference]:
    yield Reference("properties.targetGroup", properties["targetGroup"], GROUPS)
    if properties.get("credential"):
        yield Reference("properties.credential", properties["credential"], CREDENTIALS)
    if credential := (properties.get("output") or {}).get("credential"):
        yield Reference("properties.output.credential", credential, CREDENTIALS)


def _servers(properties: dict[str, Any]) -> Iterator[ServerName]:
    """The output is written to its server."""
    output = properties.get("output") or {}
    if output.get("serverName"):
        where = "properties.output.serverName"
        yield ServerName(where, output["serverName"], output.get("subscriptionId") or None)
