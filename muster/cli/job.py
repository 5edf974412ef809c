"""`muster job …`: what runs, where and when."""

import argparse
import json
from typing import Any

from muster.cli import (
    auto_disable,
    inputs,
    job_state,
    lookup,
    output,
    plans,
    rollouts,
    run_attempts,
    run_targets,
    run_watch,
    runs,
    schedules,
    step_output,
    step_verify,
)
from muster.cli.arguments import (
    Commands,
    Parser,
    add_choice,
    count,
    duration,
    of_account,
    verb,
    verbs_of,
)
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, when

COLUMNS = ("name", "version", "schedule", "enabled", "paused", "description")
STEP = ("step", "name", "group", "credential", "script")
DEFAULT_STEP = "main"
GUARDS: dict[str, bool | str] = {"run": True, "job": "job"}


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    _add_create(verbs)
    one = of_account(verb(verbs, "show", show_job, "show a job and its steps"))
    one.add_argument("name", metavar="JOB")
    of_account(verb(verbs, "list", list_jobs, "list the jobs of an account"))
    one = of_account(verb(verbs, "start", start, "run a job now, independent of its schedule"))
    one.add_argument("name", metavar="JOB")
    one.add_argument("--wait", action="store_true", help="watch the run and exit with its result")
    one.add_argument("--timeout", type=duration, help="wait at most so long: 90, 15m, 2h")
    run_targets.add_of_start(one)
    plans.add(verbs)
    one = of_account(verb(verbs, "stop", stop, "cancel every run of a job that has not finished"))
    one.add_argument("name", metavar="JOB")
    one.add_argument("--reason", help="kept with the cancellation")
    job_state.add(verbs)
    one = of_account(verb(verbs, "delete", delete, "delete a job; its history is hidden"))
    one.add_argument("name", metavar="JOB")
    one.add_argument("--force", action="store_true", help="also while it runs")
    one.add_argument("--purge-history", action="store_true", help="also delete its runs, at once")
    one.add_argument("--yes", action="store_true", help="do not ask; needed without a terminal")


def _add_create(verbs: Commands) -> None:
    one = of_account(verb(verbs, "create", create, "create a job with one step"))
    one.add_argument("name", metavar="NAME")
    one.add_argument("-g", "--group", required=True, help="the targets")
    inputs.add_script(one)
    one.add_argument("--step", default=DEFAULT_STEP, metavar="NAME", help="default: %(default)s")
    one.add_argument("--credential", metavar="NAME", help="credential; default: that of the group")
    one.add_argument("--description", metavar="TEXT")
    schedules.add(one)
    auto_disable.add(one, "as the account says")
    one.add_argument(
        "--timeout", type=duration, help="of one target with all attempts: 90, 15m, 2h"
    )
    one.add_argument("--retry-attempts", type=count, metavar="N", help="after the first one")
    one.add_argument("--retry-interval", type=duration, help="before the first repeat")
    one.add_argument("--retry-maximum", type=duration, help="the interval doubles up to this")
    one.add_argument(
        "--lock-timeout", type=duration, help="default: 5s; 0 waits as long as it takes"
    )
    one.add_argument("--max-parallelism", type=count, metavar="N", help="per pool or server")
    add_choice(
        one,
        "--transaction",
        choices=("auto", "none"),
        help="none: each statement commits by itself",
    )
    one.add_argument("--role", help="SET ROLE for the script")
    one.add_argument(
        "--guard",
        choices=tuple(GUARDS),
        help="a row in the target: applied once per run and target, or once per job and target, for ever",
    )
    one.add_argument(
        "--idempotent",
        action="store_true",
        help="may be repeated when it is unknown whether it committed",
    )
    step_verify.add(one)
    rollouts.add(one)
    run_attempts.add(one)
    step_output.add(one)
    one.add_argument("--replace", action="store_true", help="replace a job of that name")


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        account = lookup.account(api, options)
        path, step = under(account, "jobs", options.name), _step(options, account)
        properties = {"schedule": schedules.read(options)}
        if options.description:
            properties["description"] = options.description
        attempts = run_attempts.read(options)
        if attempts is not None:
            properties["runAttempts"] = attempts
        if options.auto_disable:
            properties["autoDisable"] = options.auto_disable
        old = api.find(path) if options.replace else None
        if old is None:
            _make(api, options, path, properties, step)
        else:
            _replace(api, options, path, properties, step)
        _show(api, options, path, first=True)
        if old is not None:
            output.aside(_removed(old["properties"], properties))
        output.aside(inputs.refused_by_grammar(step["action"]["value"]))
        return Exit.SUCCEEDED

    return calling(options, put)


def _make(
    api: Api,
    options: argparse.Namespace,
    path: str,
    properties: dict[str, Any],
    step: dict[str, Any],
) -> None:
    """The schedule counts last: a slot that is due at once needs the step."""
    resting = {**properties, "schedule": schedules.resting(properties["schedule"])}
    api.put(path, {"properties": resting}, new=True)
    try:
        api.put(under(path, "steps", options.step), {"properties": step})
        if properties != resting:
            api.put(path, {"properties": properties})
    except Refused:
        api.delete(path)  # half a job would only stand in the way of the next try
        raise


def _replace(
    api: Api,
    options: argparse.Namespace,
    path: str,
    properties: dict[str, Any],
    step: dict[str, Any],
) -> None:
    """The step first: when it is refused, the job is as it was."""
    api.put(under(path, "steps", options.step), {"properties": step})
    for each in api.all(f"{path}/steps"):
        if each["name"].lower() != options.step.lower():
            api.delete(under(path, "steps", each["name"]))
    api.put(path, {"properties": properties})


def _removed(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What the user may not have meant to remove."""
    before = old.get("schedule") or {}
    notes = []
    if (
        (text := schedules.describe(before))
        and before.get("enabled")
        and "type" not in new["schedule"]
    ):
        notes = [
            f"The job had a schedule, which was removed: {text}. --cron, --every or --at set one."
        ]
    options = {"runAttempts": "--run-attempts", "autoDisable": "--auto-disable"}
    return notes + [
        f"The job had {name}, which was removed: {json.dumps(old[name])}. {option} sets it."
        for name, option in options.items()
        if old.get(name) and name not in new
    ]


def show_job(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        _show(api, options, under(lookup.account(api, options), "jobs", options.name))
        return Exit.SUCCEEDED

    return calling(options, show)


def list_jobs(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        jobs = api.all(f"{lookup.account(api, options)}/jobs")
        rows = [_row(each) for each in jobs]
        output.show(options, {"value": jobs}, Table(COLUMNS, rows, optional=("description",)))
        return Exit.SUCCEEDED

    return calling(options, show)


def start(options: argparse.Namespace) -> int:
    def begin(api: Api) -> int:
        account = lookup.account(api, options)
        body = run_targets.of_start(options)
        made = api.post(under(account, "jobs", options.name, "start"), body)
        run = runs.of_item(account, made)
        if not options.wait:
            row = [run.job, run.id, made["properties"]["lifecycle"]]
            output.show(options, made, Table(("job", "run", "lifecycle"), [row]))
            return Exit.SUCCEEDED
        return run_watch.watched(api, run, options)

    return calling(options, begin)


def stop(options: argparse.Namespace) -> int:
    def cancel(api: Api) -> int:
        account = lookup.account(api, options)
        active = api.all(under(account, "jobs", options.name, "executions"), {"isActive": "true"})
        for each in active:
            run = runs.of_item(account, each)
            api.post(f"{run.path}/cancel", {"reason": options.reason} if options.reason else None)
        rows = [[options.name, each["name"]] for each in active]
        output.show(options, {"value": active}, Table(("job", "cancelled_run"), rows))
        return Exit.SUCCEEDED

    return calling(options, cancel)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = under(lookup.account(api, options), "jobs", options.name)
        if not options.yes:
            if not inputs.can_ask():
                raise Refused("deleting without a terminal needs --yes")
            if not inputs.agrees(f"Delete the job '{options.name}'?"):
                raise Refused("nothing was deleted")
        wanted = {"force": options.force, "purgeHistory": options.purge_history}
        api.delete(path, {name: "true" if value else None for name, value in wanted.items()})
        output.show(options, {"deleted": options.name}, Table(("deleted",), [[options.name]]))
        return Exit.SUCCEEDED

    return calling(options, gone)


def _step(options: argparse.Namespace, account: str) -> dict[str, Any]:
    limits = {
        "timeoutSeconds": options.timeout,
        "retryAttempts": options.retry_attempts,
        "initialRetryIntervalSeconds": options.retry_interval,
        "maximumRetryIntervalSeconds": options.retry_maximum,
        "maxParallelism": options.max_parallelism,
    }
    settings = {"lockTimeoutSeconds": options.lock_timeout, "role": options.role}
    properties: dict[str, Any] = {
        "targetGroup": f"{account}/targetGroups/{options.group}",
        "action": {"value": inputs.script(options)},
        "executionOptions": _given(limits),
        "settings": _given(settings),
        "transaction": options.transaction,
        "guard": GUARDS.get(options.guard),
        "idempotent": options.idempotent or None,
        "verify": step_verify.read(options),
        "rollout": rollouts.read(options),
        "output": step_output.read(options, account),
    }
    if options.credential:
        properties["credential"] = f"{account}/credentials/{options.credential}"
    return {name: value for name, value in properties.items() if value not in (None, {})}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _show(api: Api, options: argparse.Namespace, path: str, *, first: bool = False) -> None:
    """The job as the API shows it, with its steps beside; for people first the one, then the others.

    `first`: the job was just written, so its next run is its first one.
    """
    job, steps = api.get(path), api.all(f"{path}/steps")
    upcoming = api.get(f"{path}/nextRuns", {"$top": 1})["value"]
    rows = [
        [
            properties["stepId"],
            each["name"],
            _last(properties["targetGroup"]),
            _last(properties.get("credential")),
            properties["action"]["value"],
        ]
        for each in steps
        for properties in [each["properties"]]
    ]
    if output.is_for_people(options):
        attempts = run_attempts.describe(job["properties"].get("runAttempts"))
        health = auto_disable.describe(job["properties"])
        notes = [*_when(job["properties"], upcoming), *attempts, *health]
        if first and schedules.starts_at_once(options):
            notes = ["first run: now", *notes]
        elif first:
            notes = [each.replace("next run:", "first run:") for each in notes]
        output.show(
            options, job, Table(COLUMNS, [_row(job)], optional=("description",)), notes=notes
        )
        print()
    document = {**job, "steps": steps, "nextRuns": upcoming}
    output.show(options, document, Table(STEP, rows, optional=("credential",)))


def _when(properties: dict[str, Any], upcoming: list[dict[str, Any]]) -> list[str]:
    """When it runs next, and what happens if it still runs then; nothing without a schedule."""
    schedule = properties.get("schedule") or {}
    if schedules.describe(schedule) is None:
        return []
    if upcoming:
        next_run = when(upcoming[0]["time"])
    elif not schedule.get("enabled"):
        next_run = "none, the schedule is disabled"
    elif properties.get("paused"):
        next_run = "none while the job is paused"
    else:  # a Once disables itself as soon as it has run, and waits for steps or the end of a pause
        next_run = "as soon as it can begin" if schedule.get("type") == "Once" else "none"
    overlap = schedule.get("overlap")
    return [f"next run: {next_run}", *([f"overlap: {overlap}"] if overlap else [])]


def _row(job: dict[str, Any]) -> list[Any]:
    properties = job.get("properties") or {}  # nothing of one that only lies above
    schedule = properties.get("schedule") or {}
    return [
        job["name"],
        properties.get("version"),
        schedules.describe(schedule),
        schedule.get("enabled", False),
        properties.get("paused", False),
        properties.get("description") or None,
    ]


def _last(id: str | None) -> str | None:
    return id.rsplit("/", 1)[-1] if id else None
