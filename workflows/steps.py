"""Steps of a job; each change of one creates a new version of the job."""

from collections.abc import Iterator
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
from workflows.model.step import StepProperties
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
OUTPUT_OPTIONS = ("includeTarget", "onMismatch")


def shown(properties: dict[str, Any], here: Access) -> dict[str, Any]:
    found = present(properties)
    options = found.pop("options", {})
    found["targetGroup"] = references.shown(found["targetGroup"], GROUPS, here)
    if "credential" in found:
        found["credential"] = references.shown(found["credential"], CREDENTIALS, here)
    found["action"] = {"type": "TSql", "source": "Inline", "value": found.pop("script")}
    if "output" in found:
        output = {**found["output"], **options.pop("output", {})}
        if "credential" in output:
            output["credential"] = references.shown(output["credential"], CREDENTIALS, here)
        found["output"] = output
    return {**found, **options}


FAMILY = Family("jobs/steps", shown)
OF_VERSION = Family("jobs/versions/steps", shown)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    here = await items.enter(services, call, id)
    given = body.properties
    await _check(services, call, id, here, given)
    job, name = path_of(id)
    command = PutStep(job=job, name=name, document=document(given), condition=items.condition(call))
    return await FAMILY.put(services, call, id, here, command)


async def patch(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Merge-patch: what is not named stays as it is; a change makes a new version of the job."""
    here = await items.enter(services, call, id)
    current = shown((await FAMILY.raw(services, call, id)).properties, here)
    given = merged(current, body.properties)
    refuse(complete(StepProperties, given))
    await _check(services, call, id, here, given)
    return await FAMILY.patch(services, call, id, here, patch_document(body.properties))


async def _check(
    services: Services, call: Call, id: ResourceId, here: Access, given: dict[str, Any]
) -> None:
    """The servers of the group become targets of the script, so the caller must be allowed to use them."""
    account = account_of(id)
    named = await target_servers.check_named(services, call, account, _servers(given))
    refuse(
        [
            *validate(id.name, given),
            *await _script(call, given),
            *await references.check(services, call, account, _references(given)),
            *named.errors,
        ]
    )
    group = ResourceId.parse(given["targetGroup"]).name
    where = "properties.targetGroup"
    await target_servers.check_reached(services, call, id, "targetGroups", [group], where)
    await target_servers.allow(services, call, here, named.servers)


def patch_document(patch: dict[str, Any]) -> dict[str, Any]:
    """A merge-patch of `document`; null removes. An output can only be removed."""
    same = ("stepId", "executionOptions")
    made: dict[str, Any] = {name: patch[name] for name in same if name in patch}
    for name in ("targetGroup", "credential"):
        if name in patch:
            made[name] = references.document(patch[name])
    if (action := patch.get("action")) and "value" in action:
        made["script"] = action["value"]
    options = {name: patch[name] for name in OPTIONS if name in patch}
    if "output" in patch:
        made["output"] = options["output"] = None
    return made | ({"options": options} if options else {})


def document(given: dict[str, Any]) -> dict[str, Any]:
    """As the control database takes it; an empty reference is none."""
    made: dict[str, Any] = {
        "targetGroup": references.document(given["targetGroup"]),
        "credential": references.document(given.get("credential")),
        "script": given["action"]["value"],
        "executionOptions": given.get("executionOptions") or {},
        "output": None,
        "options": {name: given[name] for name in OPTIONS if name in given},
    }
    if "stepId" in given:
        made["stepId"] = given["stepId"]
    if output := given.get("output"):
        more = {name: output[name] for name in OUTPUT_OPTIONS if name in output}
        if more:
            made["options"]["output"] = more
        made["output"] = {
            "type": "SqlDatabase",
            "schemaName": "dbo",
            **{name: value for name, value in output.items() if name not in more},
            "credential": references.document(output.get("credential")),
        }
    return made


async def _script(call: Call, given: dict[str, Any]) -> list[FieldError]:
    text, transaction = given["action"]["value"], given.get("transaction", "auto")
    analysis = await script_reader.analyse(text, transaction, items.who(call))
    errors = [problem.error("properties.action.value") for problem in analysis.problems]
    if given.get("guard") and transaction == "auto" and analysis.script.autocommit:
        errors.append(unguarded())
    sql = (given.get("verify") or {}).get("sql", "")
    if sql.strip():  # an empty one is refused by its shape
        query = await script_reader.analyse(sql, "auto", items.who(call))
        errors += [each.error("properties.verify.sql") for each in verify_query.problems(query)]
    return errors


def _references(given: dict[str, Any]) -> Iterator[Reference]:
    yield Reference("properties.targetGroup", given["targetGroup"], GROUPS)
    if given.get("credential"):
        yield Reference("properties.credential", given["credential"], CREDENTIALS)
    if credential := (given.get("output") or {}).get("credential"):
        yield Reference("properties.output.credential", credential, CREDENTIALS)


def _servers(given: dict[str, Any]) -> Iterator[ServerName]:
    """The output is written to its server."""
    output = given.get("output") or {}
    if output.get("serverName"):
        where = "properties.output.serverName"
        yield ServerName(where, output["serverName"], output.get("subscriptionId") or None)
