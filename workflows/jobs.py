"""Jobs of an account: their schedule, their start, their next runs."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from muster.core import schedule
from muster.core.errors import FieldError, refuse
from muster.core.ids import ResourceId
from nodeagent.items import PutJob, PutJobWithSteps, StartJob
from workflows import executions, items, run_targets, steps, target_servers
from workflows.access import path_of
from workflows.accesscache import Access
from workflows.items import Family, present
from workflows.model.item import Item, Report, WrittenItem
from workflows.model.job import MisfireProperties, ScheduleProperties
from workflows.model.resource import Body, Call, Deleted, Page
from workflows.resource_kind import merged
from workflows.services import Services
from workflows.validation.job import SCHEDULE, schedule_of
from workflows.validation.job import job as validate
from workflows.validation.start import start as validate_start

NO_SCHEDULE: dict[str, Any] = dict.fromkeys(
    (
        *ScheduleProperties.__struct_encode_fields__,
        "intervalType",
        "intervalCount",
    )
)
NO_MISFIRE: dict[str, Any] = dict.fromkeys(MisfireProperties.__struct_encode_fields__)
NO_INTERVAL = dict.fromkeys(("interval", "intervalType", "intervalCount"))
OURS_ALONE = {"intervalType", "intervalCount", "since"}  # REST has `interval`


def shown(properties: dict[str, Any], _: Access) -> dict[str, Any]:
    document: dict[str, Any] = present(properties)
    document["schedule"] = {
        name: value for name, value in document["schedule"].items() if name not in OURS_ALONE
    }
    return document


FAMILY = Family("jobs", shown)
VERSIONS = Family("jobs/versions")


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """What is not said gets its default: a job without a schedule has none any more."""
    here = await items.enter(services, call, id)
    refuse(validate(id.name, body.properties))
    document = {**body.properties, "schedule": _schedule(body.properties.get("schedule") or {})}
    if (listed := document.pop("steps", None)) is not None:
        return await _put_with_steps(services, call, id, here, document, listed, is_patch=False)
    await _check_schedule(services, call, id, document)
    command = PutJob(name=id.name, document=document, condition=items.condition(call))
    return await FAMILY.put(services, call, id, here, command)


async def _put_with_steps(
    services: Services,
    call: Call,
    id: ResourceId,
    here: Access,
    document: dict[str, Any],
    listed: list[dict[str, Any]],
    *,
    is_patch: bool,
) -> WrittenItem:
    """In one transaction, so that no run begins with some of the steps."""
    command = PutJobWithSteps(
        name=id.name,
        document=document,
        steps=await steps.of_job(services, call, id, here, [present(each) for each in listed]),
        condition=items.condition(call),
        is_patch=is_patch,
    )
    return await FAMILY.put(services, call, id, here, command)


async def patch(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Merge-patch: what is not named stays as it is."""
    here = await items.enter(services, call, id)
    current = shown((await FAMILY.raw(services, call, id)).properties, here)
    document = patch_document(body.properties)
    listed = document.pop("steps", None)
    wanted = merged(current, document)
    refuse(validate(id.name, wanted))
    if listed is not None:
        return await _put_with_steps(services, call, id, here, document, listed, is_patch=True)
    await _check_schedule(services, call, id, wanted)
    return await FAMILY.patch(services, call, id, here, document)


def patch_document(patch: dict[str, Any]) -> dict[str, Any]:
    """As the control database takes it: an interval and a cron expression replace each other."""
    schedule_patch = patch.get("schedule")
    if schedule_patch is None:
        return dict(patch)
    schedule = dict(schedule_patch)
    wanted = schedule_of(schedule_patch, on_error=lambda _: None)
    for name, at in (("startTime", wanted.start), ("endTime", wanted.end)):
        if schedule_patch.get(name):
            schedule[name] = _time(at)
    if schedule_patch.get("type") == "Once":
        schedule = {"cron": None, "timeZone": None} | schedule | NO_INTERVAL
    elif schedule_patch.get("cron") is not None:
        schedule = NO_INTERVAL | {"type": "Recurring"} | schedule
    elif schedule_patch.get("interval") is not None:
        schedule = {"cron": None, "timeZone": None, "type": "Recurring"} | schedule
    elif "interval" in schedule_patch:
        schedule |= NO_INTERVAL
    return {**patch, "schedule": schedule}


async def read_schedule(services: Services, call: Call, id: ResourceId) -> Report:
    return _schedule_of(await FAMILY.get(services, call, id))


async def put_schedule(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> Report:
    """Replaces the schedule as PUT of the job would; everything else of the job stays."""
    here = await items.enter(services, call, id)
    if body.get("interval") is not None:
        body = {"type": "Recurring", **body}
    wrong = validate(id.name, {"schedule": body})
    if body.get("interval") is not None and body["type"] == "Once":
        wrong.append(FieldError("interval", "A schedule of type Once has no interval."))
    refuse([replace(each, target=_inside(each.target)) for each in wrong])
    await _check_schedule(services, call, id, {"schedule": body})
    document = {"schedule": NO_SCHEDULE | _schedule(body)}
    document["schedule"]["misfire"] = NO_MISFIRE | (body.get("misfire") or {})
    return _schedule_of((await FAMILY.patch(services, call, id, here, document)).item)


def _schedule_of(job: Item) -> Report:
    """With the ETag of the job."""
    tag = None if job.row_version is None else str(job.row_version)
    return Report(content=job.properties["schedule"], tag=tag)


def _inside(target: str) -> str:
    """A field of the body, which is the schedule."""
    return target.removeprefix(f"{SCHEDULE}.")


async def _check_schedule(
    services: Services, call: Call, id: ResourceId, wanted: dict[str, Any]
) -> None:
    """A schedule that is enabled starts the job with the steps that are stored."""
    if (wanted.get("schedule") or {}).get("enabled"):
        await executions.check_start(services, call, id)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    parameters = {name.lower(): value.lower() == "true" for name, value in call.query.items()}
    options = {
        "force": parameters.get("force", False),
        "purgeHistory": parameters.get("purgehistory", False),
    }
    return await FAMILY.delete(services, call, id, options)


async def start(services: Services, call: Call, id: ResourceId, body: dict[str, Any]) -> Item:
    """Now, independent of the schedule; a repeated request gets the execution of the first one."""
    here = await items.enter(services, call, id)
    (job,) = path_of(id)
    refuse(validate_start(body))
    await _check_start(services, call, id, here, body)
    command = StartJob(job=job, document=body)
    action = FAMILY.action("start/action")
    with run_targets.unlisted_server_explained():
        written = await items.write(services, call, id, here, action, command)
    return executions.FAMILY.item(written.item, here)


async def _check_start(
    services: Services, call: Call, id: ResourceId, here: Access, body: dict[str, Any]
) -> None:
    """The caller must be allowed to use the servers that this run reaches."""
    if "planId" in body:
        caller = target_servers.beyond_token_scope(call)
        plans = [body["planId"]]
        await target_servers.check_reached(services, caller, id, "plans", plans, "planId")
    elif "targets" in body:
        await run_targets.check(services, call, id, here, body["targets"])
        caller = target_servers.beyond_token_scope(call)
        await target_servers.check_reached(services, caller, id, "outputs", [id.name], "jobName")
    else:
        await executions.check_start(services, call, id)


async def next_runs(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """The instants at which the schedule will start the job, as far as they are asked for."""
    item = await FAMILY.raw(services, call, id)
    properties = present(item.properties)
    schedule_document = properties["schedule"]
    wanted = schedule_of(schedule_document, on_error=lambda _: None)
    slots = schedule.slots(
        wanted,
        anchor=datetime.fromisoformat(schedule_document["since"]),
        after=datetime.fromisoformat(after) if after else services.clock.now(),
    )
    times = [] if properties.get("paused") else [_time(slot) for slot in islice(slots, top + 1)]
    return Page(
        items=[{"time": each} for each in times[:top]],
        next=times[top - 1] if len(times) > top else None,
    )


def _schedule(schedule: dict[str, Any]) -> dict[str, Any]:
    """With the interval in the control database's own terms, beside the text that was given."""
    wanted = schedule_of(schedule, on_error=lambda _: None)
    document = dict(schedule)
    for name, at in (("startTime", wanted.start), ("endTime", wanted.end)):
        document[name] = _time(at)
    if wanted.interval_type is not None:
        document["intervalType"] = wanted.interval_type.value
        document["intervalCount"] = wanted.interval_count
    else:
        document.pop("interval", None)
    if wanted.cron is not None:
        document["type"] = "Recurring"
    return document


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
