"""`muster job …`: what runs, where and when."""

import argparse
import json
from shlex import quote
from typing import Any

from muster.cli import (
    deletes,
    inputs,
    job_history,
    job_options,
    job_state,
    job_view,
    lookup,
    output,
    plans,
    run_targets,
    run_watch,
    runs,
    schedules,
    step_options,
)
from muster.cli.arguments import (
    Commands,
    Parser,
    duration,
    of_account,
    verb,
    verbs_of,
)
from muster.cli.client import Api, Refused, calling, under
from muster.cli.declared import export
from muster.cli.exits import Exit
from muster.cli.output import Table

DEFAULT_STEP = "main"
WAYS_OUT = {  # how a refusal of a start ends → the command that helps
    '" is paused': "job resume {job}",
    '" has no steps': "step add {job}",
}


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    _add_create(verbs)
    _add_update(verbs)
    one = of_account(
        verb(verbs, "show", show_job, "show a job and its steps", example="muster job show nightly")
    )
    one.add_argument("name", metavar="JOB")
    of_account(
        verb(verbs, "list", list_jobs, "list the jobs of an account", example="muster job list")
    )
    one = of_account(
        verb(
            verbs,
            "start",
            start,
            "run a job now, independent of its schedule",
            example="muster job start nightly --wait --timeout 2h",
        )
    )
    one.add_argument("name", metavar="JOB")
    one.add_argument("--wait", action="store_true", help="watch the run and exit with its result")
    one.add_argument("--timeout", type=duration, help="wait at most so long: 90, 15m, 2h")
    run_targets.add_of_start(one)
    plans.add(verbs)
    one = of_account(
        verb(
            verbs,
            "stop",
            stop,
            "cancel every run of a job that has not finished",
            example="muster job stop nightly --reason 'wrong script'",
        )
    )
    one.add_argument("name", metavar="JOB")
    one.add_argument("--reason", help="kept with the cancellation")
    job_state.add(verbs)
    export.add_of_job(verbs)
    job_history.add(verbs)
    one = of_account(
        verb(
            verbs,
            "delete",
            delete,
            "delete a job; its history is hidden",
            example="muster job delete nightly --yes",
        )
    )
    one.add_argument("name", metavar="JOB")
    one.add_argument("--force", action="store_true", help="also while it runs")
    one.add_argument("--purge-history", action="store_true", help="also delete its runs, at once")
    deletes.add(one)


def _add_create(verbs: Commands) -> None:
    about = "create a job with one step; muster step add adds further ones"
    example = (
        "muster job create nightly -g tenants -c 'analyze' --every 1d --start 2031-01-01T02:00:00Z"
    )
    one = of_account(verb(verbs, "create", create, about, example=example))
    one.add_argument("name", metavar="NAME")
    one.add_argument("--step", default=DEFAULT_STEP, metavar="NAME", help="default: %(default)s")
    job_options.add(one)
    step_options.add(one)
    one.add_argument("--replace", action="store_true", help="replace a job of that name")


def _add_update(verbs: Commands) -> None:
    about = (
        "change a job; what is not named stays, also its steps: muster step update changes those"
    )
    example = "muster job update nightly --cron '30 4 * * *' --reset description"
    one = of_account(verb(verbs, "update", update, about, example=example))
    one.add_argument("name", metavar="JOB")
    job_options.add_update(one)


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        account = lookup.account(api, options)
        path = under(account, "jobs", options.name)
        step = step_options.read(options, account)
        properties = job_options.read(options)
        old = api.find(path) if options.replace else None
        written = {**properties, "steps": [{"name": options.step, **step}]}
        api.put(path, {"properties": written}, new=not options.replace)
        job_view.show(api, options, path, first=True)
        if old is not None:
            output.aside(_removed(old["properties"], properties))
        output.aside(inputs.refused_by_grammar(step["action"]["value"]))
        return Exit.SUCCEEDED

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        path = under(lookup.account(api, options), "jobs", options.name)
        changed = job_options.changes(options, api.latest(path)["properties"])
        etag = api.seen_etag(path) if "schedule" in changed["properties"] else None
        api.patch(path, changed, etag=etag)
        job_view.show(api, options, path)
        return Exit.SUCCEEDED

    return calling(options, patch)


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
        job_view.show(api, options, under(lookup.account(api, options), "jobs", options.name))
        return Exit.SUCCEEDED

    return calling(options, show)


def list_jobs(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        jobs = api.all(f"{lookup.account(api, options)}/jobs")
        rows = [job_view.row(each) for each in jobs]
        output.show(
            options, {"value": jobs}, Table(job_view.COLUMNS, rows, optional=job_view.OPTIONAL)
        )
        return Exit.SUCCEEDED

    return calling(options, show)


def start(options: argparse.Namespace) -> int:
    def begin(api: Api) -> int:
        account = lookup.account(api, options)
        body = run_targets.of_start(options)
        try:
            made = api.post(under(account, "jobs", options.name, "start"), body)
        except Refused as refused:
            raise _with_way_out(refused, options.name) from refused
        run = runs.of_item(account, made)
        if not options.wait:
            row = [run.job, run.id, made["properties"]["lifecycle"]]
            output.show(options, made, Table(("job", "run", "lifecycle"), [row]))
            return Exit.SUCCEEDED
        return run_watch.watched(api, run, options)

    return calling(options, begin)


def _with_way_out(refused: Refused, job: str) -> Refused:
    """The API speaks to REST and psql too, so it names no command."""
    for reason, way in WAYS_OUT.items():
        message = refused.message.rstrip(".")
        if message.endswith(reason):
            message = f"{message}: muster {way.format(job=quote(job))}"
            return Refused(message, refused.code, error=refused.error, field=refused.field)
    return refused


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
        deletes.agreed(options, f"the job '{options.name}'", lambda: _along(options))
        wanted = {"force": options.force, "purgeHistory": options.purge_history}
        query = {name: "true" if value else None for name, value in wanted.items()}
        return deletes.done(api, options, path, options.name, query)

    return calling(options, gone)


def _along(options: argparse.Namespace) -> str:
    history = "its runs and their history are deleted for ever" if options.purge_history else ""
    along = [history or "its history is hidden"]
    if options.force:
        along.append("runs that go on are cancelled")
    return ", ".join(along)
