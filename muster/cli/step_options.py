"""Options of a step, for `job create`, `step add` and `step update`: each is a property of the step in REST."""

import argparse
from typing import Any

from muster.cli import inputs, output, rollouts, updates
from muster.cli.arguments import Parser, count, duration
from muster.cli.client import Refused
from muster.cli.typed import spelled, words
from muster.cli.updates import Document, Setting, pairs, setting

GUARDS: dict[str, bool | str] = {"run": True, "job": "job"}
FLAG: dict[str, Any] = {"action": "store_const", "const": True}
OPTIONS, SESSION = "properties.executionOptions", "properties.settings"
ROLLOUT, VERIFY, OUTPUT = "properties.rollout", "properties.verify", "properties.output"

SETTINGS = (
    setting(
        "--credential",
        "properties.credential",
        metavar="NAME",
        help="credential; default: that of the group, server or account",
    ),
    setting(
        "--timeout",
        f"{OPTIONS}.timeoutSeconds",
        type=duration,
        help="of one target with all attempts: 90, 15m, 2h; default: 12h",
    ),
    setting(
        "--retry-attempts",
        f"{OPTIONS}.retryAttempts",
        type=count,
        metavar="N",
        help="after the first one; default: 10",
    ),
    setting(
        "--retry-interval",
        f"{OPTIONS}.initialRetryIntervalSeconds",
        type=duration,
        help="before the first repeat; default: 1s",
    ),
    setting(
        "--retry-maximum",
        f"{OPTIONS}.maximumRetryIntervalSeconds",
        type=duration,
        help="the interval grows up to this; default: 2m",
    ),
    setting(
        "--retry-factor",
        f"{OPTIONS}.retryIntervalBackoffMultiplier",
        type=float,
        metavar="NUMBER",
        help="by which the interval grows with each repeat; default: 2",
    ),
    setting(
        "--retry-on",
        "properties.retryOn",
        type=words,
        metavar="SQLSTATE,…",
        help="repeat these too: SQLSTATEs or their classes, such as 42P01,23",
    ),
    setting(
        "--jitter",
        "properties.jitter",
        type=float,
        metavar="NUMBER",
        help="by how much an interval may be longer, 0 to 1; default: 0.25",
    ),
    setting(
        "--max-parallelism",
        f"{OPTIONS}.maxParallelism",
        type=count,
        metavar="N",
        help="targets at once per pool or server",
    ),
    setting(
        "--slots-per-database",
        "properties.slotsPerDatabase",
        type=count,
        metavar="N",
        help="targets at once in one database, of a step on schemas; default: 1",
    ),
    setting(
        "--lock-timeout",
        f"{SESSION}.lockTimeoutSeconds",
        type=duration,
        help="default: 5s; 0 waits as long as it takes",
    ),
    setting("--role", f"{SESSION}.role", metavar="ROLE", help="SET ROLE for the script"),
    setting("--search-path", f"{SESSION}.searchPath", metavar="SCHEMAS", help="of the script"),
    setting(
        "--access",
        f"{SESSION}.access",
        choices=("readWrite", "readOnly", "preferStandby"),
        help="readOnly: nothing can be written; preferStandby: that, on a standby where there is one",
    ),
    pairs("--parameter", f"{SESSION}.parameters", "a parameter of PostgreSQL, set for the script"),
    setting(
        "--transaction",
        "properties.transaction",
        choices=("auto", "none"),
        help="none: each statement commits by itself",
    ),
    setting(
        "--guard",
        "properties.guard",
        read=GUARDS.get,
        choices=tuple(GUARDS),
        help="a row in the target: applied once per run and target, or once per job and target, for ever",
    ),
    setting(
        "--idempotent",
        "properties.idempotent",
        **FLAG,
        help="may be repeated when it is unknown whether it committed",
    ),
    setting(
        "--advance",
        "properties.advance",
        choices=("barrier", "perTarget"),
        help="perTarget: begins on each target that has succeeded in the previous step; default: barrier",
    ),
    setting(
        "--on-failure",
        "properties.onFailure",
        choices=("stop", "continue"),
        help="whether the next step begins although this one failed; default: stop",
    ),
    setting(
        "--allow-empty", "properties.allowEmpty", **FLAG, help="a step without targets succeeds"
    ),
    setting(
        "--waves",
        f"{ROLLOUT}.waves",
        type=rollouts.waves,
        metavar="LIST",
        help="so many targets have started with each wave, such as 1,5%%,100%%",
    ),
    setting(
        "--halt-after",
        f"{ROLLOUT}.haltAfterFailures",
        type=rollouts.count_or_percent,
        metavar="N|P%",
        help="with --waves: nothing further starts when so many targets have failed; default: 1",
    ),
    setting(
        "--pause-between",
        f"{ROLLOUT}.pauseBetween",
        type=duration,
        read=lambda seconds: f"PT{seconds}S",
        help="with --waves: pause after each wave: 90, 15m, 2h",
    ),
    setting(
        "--gate",
        f"{ROLLOUT}.gate",
        choices=("auto", "manual"),
        help="with --waves; manual: each further wave waits for `muster run resume`",
    ),
    setting(
        "--order-by",
        f"{ROLLOUT}.orderBy",
        metavar="ORDER",
        help="with --waves: the name of a label, or random(SEED); default: by name",
    ),
    setting(
        "--verify", f"{VERIFY}.sql", metavar="SQL", help="a query that is asked after the commit"
    ),
    setting(
        "--verify-expect",
        f"{VERIFY}.expect",
        choices=("nonEmpty", "empty", "true"),
        help="what it must return; default: nonEmpty",
    ),
    setting(
        "--verify-value",
        f"{VERIFY}.value",
        metavar="TEXT",
        reset=False,
        help="the only value that it must return",
    ),
    setting(
        "--verify-timeout",
        f"{VERIFY}.timeoutSeconds",
        type=duration,
        help="of the query; default: 60s",
    ),
    setting(
        "--skip-if-holds",
        f"{VERIFY}.skipIfHolds",
        **FLAG,
        help="ask --verify before the script too, and do nothing if it holds",
    ),
    setting(
        "--output-server",
        f"{OUTPUT}.serverName",
        metavar="NAME",
        help="write the rows of the first result set there",
    ),
    setting(
        "--output-database",
        f"{OUTPUT}.databaseName",
        metavar="NAME",
        reset=False,
        help="with --output-server",
    ),
    setting(
        "--output-table",
        f"{OUTPUT}.tableName",
        metavar="NAME",
        reset=False,
        help="with --output-server; created from the result if it does not exist",
    ),
    setting(
        "--output-schema",
        f"{OUTPUT}.schemaName",
        metavar="NAME",
        help="default: dbo if there is one, else public",
    ),
    setting(
        "--output-credential",
        f"{OUTPUT}.credential",
        metavar="NAME",
        help="default: that of the step, of the group or of the server",
    ),
    setting(
        "--output-subscription",
        f"{OUTPUT}.subscriptionId",
        metavar="NAME",
        help="of --output-server; default: that of the account",
    ),
    setting(
        "--output-resource-group",
        f"{OUTPUT}.resourceGroupName",
        metavar="NAME",
        help="of --output-server; default: that of the account",
    ),
    setting(
        "--output-include-target",
        f"{OUTPUT}.includeTarget",
        **FLAG,
        help="write target_server, target_database, target_schema and attempt too",
    ),
    setting(
        "--output-on-mismatch",
        f"{OUTPUT}.onMismatch",
        choices=("fail", "addColumn"),
        help="if the table lacks a column of the result; default: fail",
    ),
)
WHOLE = {"verify": "sql", "rollout": "waves", "output": "serverName"}  # none of it without this
REFERENCES = {"targetGroup": "targetGroups", "credential": "credentials"}
PLACE = {"serverName": "server", "databaseName": "database", "tableName": "table"}


def add(made: Parser) -> None:
    """Of a new step."""
    made.add_argument("-g", "--group", required=True, help="the targets")
    inputs.add_script(made)
    updates.add_settings(made, SETTINGS)


def add_update(made: Parser) -> None:
    made.add_argument("-g", "--group", help="the targets")
    inputs.add_script(made, required=False)
    updates.add(made, SETTINGS)


def read(options: argparse.Namespace, account: str) -> Document:
    """The properties of a new step."""
    made = updates.merged(updates.given(options, SETTINGS), _own(options))
    properties: Document = _referring(made, account)["properties"]
    verify, rollout, place = (properties.get(name) or {} for name in WHOLE)
    if verify and "sql" not in verify:
        raise Refused(
            "--verify-expect, --verify-value, --verify-timeout and --skip-if-holds belong to --verify SQL"
        )
    _expect_value(options, verify)
    if rollout and "waves" not in rollout:
        raise Refused("--halt-after, --pause-between, --gate and --order-by need --waves")
    missing = [f"--output-{name}" for key, name in PLACE.items() if key not in place]
    if place and missing:
        raise Refused(f"an output needs {', '.join(missing)} too")
    return properties


def changes(options: argparse.Namespace, account: str) -> Document:
    """A merge patch; the API judges the step as it is then."""
    patch = updates.changes(options, SETTINGS, also=_own(options))
    properties = patch["properties"]
    verify = properties.get("verify") or {}
    if "expect" in verify:
        verify["value"] = None  # it belongs to another expectation
    _expect_value(options, verify)
    for name, needed in WHOLE.items():
        if (properties.get(name) or {}).get(needed, "") is None:
            properties[name] = None
    return _referring(patch, account)


def described(properties: Document) -> list[tuple[str, str]]:
    """What is set, as the options that set it, in their order."""
    rows = [("group", _last(properties.get("targetGroup")))]
    for each in SETTINGS:
        value: Any = {"properties": properties}
        for name in each.path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value is None or (each.name == "verify-expect" and value == "value"):
            continue
        rows.append((each.name, _as_typed(each, value)))
    return rows


def _own(options: argparse.Namespace) -> Document:
    """Group and script, of which each step has one."""
    said: Document = {}
    if options.group:
        said["targetGroup"] = options.group
    if options.sql is not None or options.file is not None:
        said["action"] = {"value": inputs.script(options)}
    return {"properties": said} if said else {}


def _expect_value(options: argparse.Namespace, verify: Document) -> None:
    if options.verify_value is None:
        return
    if options.verify_expect:
        raise Refused("either --verify-expect or --verify-value")
    verify |= {"expect": "value", "value": options.verify_value}


def _referring(document: Document, account: str) -> Document:
    """Groups and credentials by their ids; an empty name is none."""
    properties = document["properties"]
    for place in (properties, properties.get("output") or {}):
        for name, collection in REFERENCES.items():
            if place.get(name):
                place[name] = f"{account}/{collection}/{place[name]}"
    return document


def _as_typed(each: Setting, value: Any) -> str:
    if each.path.endswith("credential"):
        return _last(value)
    if each.argument.get("type") is duration and not isinstance(value, str):
        return spelled(value)
    if each.name == "guard":
        return next(word for word, meant in GUARDS.items() if meant == value) if value else "none"
    if each.is_map:
        return ", ".join(f"{key}={text}" for key, text in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else output.text(value)


def _last(id: str | None) -> str:
    return id.rsplit("/", 1)[-1] if id else ""
