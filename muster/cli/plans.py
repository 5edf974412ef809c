"""`muster job plan`: what a start of a job would run, stored without starting it."""

import argparse
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Any

from muster.cli import lookup, output, runs
from muster.cli.arguments import Commands, of_account, verb
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, many, moment

SERVERS = ("step", "name", "server", "targets", "connections", "disabled")
TARGETS = ("step", "wave", "server", "database", "schema", "is", "reason")
PLANS = ("plan", "version", "created", "by", "targets", "expires", "run")
MOST_NAMED = 5


def add(verbs: Commands) -> None:
    one = of_account(
        verb(
            verbs,
            "plan",
            plan,
            "store what a start of a job would run, and show it",
            example="muster job plan nightly",
        )
    )
    one.add_argument("name", metavar="JOB")
    one.add_argument("--show", metavar="PLAN", help="only show this one, which was stored before")
    one.add_argument("--targets", action="store_true", help="each target, and what is left out")
    about = "list the plans of a job that have not expired, the newest first"
    one = of_account(verb(verbs, "plans", list_plans, about, example="muster job plans nightly"))
    one.add_argument("name", metavar="JOB")


def plan(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        job = under(lookup.account(api, options), "jobs", options.name)
        item = (
            api.get(under(job, "plans", options.show)) if options.show else api.post(f"{job}/plan")
        )
        steps = item["properties"]["steps"]
        columns, rows = (TARGETS, _targets) if options.targets else (SERVERS, _servers)
        table = Table(columns, list(rows(steps)), optional=("schema", "reason", "disabled"))
        output.show(options, item, table, notes=_notes(options.name, item))
        return Exit.SUCCEEDED

    return calling(options, show)


def list_plans(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        items = api.all(under(lookup.account(api, options), "jobs", options.name, "plans"))
        output.show(options, {"value": items}, Table(PLANS, [_row(item) for item in items]))
        return Exit.SUCCEEDED

    return calling(options, show)


def _row(item: dict[str, Any]) -> list[Any]:
    properties, system = item["properties"], item["systemData"]
    created, expires = moment(system["createdAt"]), moment(properties["expiresAt"])
    about = [item["name"], properties["jobVersion"], created, system["createdBy"]]
    return [*about, properties["count"], expires, properties.get("jobExecutionId")]


def _servers(steps: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    for step in steps:
        for each in step.get("servers", []):
            connections = each["connections"] or "unknown"
            row = [step["stepId"], step["stepName"], each["serverName"], each["count"]]
            yield [*row, connections, each["disabled"] or None]


def _targets(steps: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    for step in steps:
        for kind, what in (
            ("targets", "target"),
            ("leftOut", "left out"),
            ("missing", "missing"),
            ("unreachable", "unreachable"),
        ):
            for each in step.get(kind, []):
                place = (each.get(name) for name in ("serverName", "databaseName", "schemaName"))
                yield [step["stepId"], each.get("wave"), *place, what, _reason(each)]


def _reason(each: dict[str, Any]) -> str | None:
    by = each.get("excludedBy")
    if "message" in each:
        return f"{each['code']}: {each['message']}"
    return f"{each['reason']} by {by}" if by else each.get("reason")


def _notes(job: str, item: dict[str, Any]) -> Iterator[str]:
    properties = item["properties"]
    steps = properties["steps"]
    for step in steps:
        yield f"step {step['stepId']} {step['stepName']}: {_about(step)}"
        yield from _warnings(step)
    took = properties["shortestSeconds"]
    duration = "" if took is None or len(steps) == 1 else f", at least {_seconds(took)} in all"
    yield f"version {properties['jobVersion']} of the job{duration}; nothing was started"
    if run := properties.get("jobExecutionId"):
        yield f"started: muster run show {run}"
    elif properties["count"] and not any("error" in step for step in steps):
        until = moment(properties["expiresAt"])
        yield f"start exactly this until {until}: muster job start {quote(job)} --plan {item['name']}"


def _about(step: dict[str, Any]) -> str:
    if error := step.get("error"):
        return f"can't be planned: {error['code']}: {error['message']}"
    waves = step["waves"]
    text = many(step["count"], "target")
    if len(waves) > 1:
        text += f" in waves of {', '.join(str(wave['count']) for wave in waves)}"
    earlier = step["earlierAttempts"]
    if step["shortestSeconds"] is not None:
        basis = f"{many(earlier['count'], 'earlier attempt')} took {_seconds(earlier['averageSeconds'])} on average"
        return f"{text}, at least {_seconds(step['shortestSeconds'])}: {basis}"
    why = "a server is disabled" if earlier["count"] else "it has not succeeded before"
    return f"{text}; how long it takes is unknown: {why}"


def _warnings(step: dict[str, Any]) -> Iterator[str]:
    kinds = {
        "leftOut": "left out",
        "missing": "missing",
        "unreachable": "unreachable, to fail if it is started",
    }
    for kind, what in kinds.items():
        if listed := step.get(kind):
            yield f"  {step[f'{kind}Count']} {what}: {_named(listed, step[f'{kind}Count'])}"
    for each in step.get("missingCredentials", []):
        yield f"  no credential for {many(each['count'], 'target')} on {each['serverName']}"
    if output := step.get("output"):
        yield from _output(output)
    for statement in step["outsideTransaction"]:
        yield f"  outside of a transaction: {statement}"


def _output(output: dict[str, Any]) -> Iterator[str]:
    server = output["serverName"]
    yield f"  output: {output['schemaName']}.{output['tableName']} in {output['databaseName']} on {server}"
    if not output["serverExists"]:
        advice = f"allow it with muster account allow-server {quote(server)}"
        yield f"  the output's server {server} is not in the account's directory: {advice}"
    elif output["disabled"]:
        yield f"  the output's server {server} is disabled, or its private endpoint was rejected"
    if output["serverExists"] and output["missingCredentialCount"]:
        yield f"  no credential for the output of {many(output['missingCredentialCount'], 'target')}"


def _named(listed: list[dict[str, Any]], count: int) -> str:
    names = [
        f"{runs.name(each)}{f' ({reason})' if (reason := _reason(each)) else ''}"
        for each in listed[:MOST_NAMED]
    ]
    more = count - len(names)
    return ", ".join([*names, *([f"{more} more"] if more else [])])


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
