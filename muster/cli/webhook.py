"""`muster webhook …`: receivers of notifications about runs and schedules."""

import argparse
from pathlib import Path
from typing import Any

from muster.cli import client, deletes, inputs, lookup, output, updates
from muster.cli.arguments import Parser, add_choice, count, of_account, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment
from muster.cli.updates import setting, switch

EVENTS = (
    "failed",
    "succeeded",
    "recovered",
    "late",
    "missed",
    "halted",
    "autoDisableWarning",
    "autoDisabled",
)
STATUSES = ("Pending", "Delivered", "Failed")
COLUMNS = ("name", "url", "events", "jobs", "enabled", "pending", "delivered", "failed")
DELIVERY = (
    "id", "time", "events", "kind", "job", "status", "attempts", "code", "next_attempt", "error",
)  # fmt: skip
CREATED = (
    setting(
        "--to",
        "properties.url",
        reset=False,
        metavar="URL",
        help="http or https; receives POST requests",
    ),
    setting(
        "--event",
        "properties.events",
        reset=False,
        choices=EVENTS,
        action="append",
        help="may be given several times",
    ),
    setting(
        "--job",
        "properties.jobs",
        action="append",
        metavar="JOB",
        help="only of this job; may be given several times; default: of all jobs",
    ),
    setting(
        "--max-attempts",
        "properties.maxAttempts",
        type=count,
        metavar="N",
        help="1 to 20; default: 8",
    ),
    switch("--disable", "properties.enabled", "deliver no new events", to=False),
)
SETTINGS = (
    *CREATED,
    switch("--enable", "properties.enabled", "deliver new events again", to=True),
)
TEST_PATIENCE = 20.0  # seconds for the engine to send the event and the receiver to answer


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "create a webhook; its secret comes from the terminal, stdin or a file"
    one = _of_name(
        verb(
            verbs,
            "create",
            create,
            about,
            example="muster webhook create on-call --to https://alerts.example.org/muster --event failed --event halted",
        )
    )
    updates.add_settings(one, CREATED)
    one.add_argument("--secret-file", type=Path, metavar="FILE", help="- is stdin")
    one = _of_name(
        verb(
            verbs,
            "update",
            update,
            "change what is named of a webhook",
            example="muster webhook update on-call --job nightly --max-attempts 4",
        )
    )
    updates.add(one, SETTINGS)
    one.add_argument("--secret-file", type=Path, metavar="FILE", help="- is stdin")
    one.add_argument("--new-secret", action="store_true", help="ask for another secret")
    of_account(
        verb(
            verbs,
            "list",
            list_webhooks,
            "list the webhooks of an account",
            example="muster webhook list",
        )
    )
    _of_name(verb(verbs, "show", show, "show a webhook", example="muster webhook show on-call"))
    deletes.add(
        _of_name(
            verb(
                verbs,
                "delete",
                delete,
                "delete a webhook and its deliveries",
                example="muster webhook delete on-call --yes",
            )
        )
    )
    _of_name(
        verb(
            verbs,
            "test",
            test,
            "send a test event and show what the receiver answered",
            example="muster webhook test on-call",
        )
    )
    one = _of_name(
        verb(
            verbs,
            "deliveries",
            deliveries,
            "list deliveries, the newest first",
            example="muster webhook deliveries on-call --status Failed",
        )
    )
    add_choice(one, "--status", choices=STATUSES, help="only these; Failed: dead letters")
    one.add_argument("--top", type=count, default=20, metavar="N", help="default: 20")
    one = _of_name(
        verb(
            verbs,
            "replay",
            replay,
            "send events again; default: all dead letters",
            example="muster webhook replay on-call",
        )
    )
    one.add_argument("--event", action="append", metavar="ID", help="may be given several times")


def _of_name(one: Parser) -> Parser:
    of_account(one).add_argument("name", metavar="NAME")
    return one


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        for option, value in (("--to", options.to), ("--event", options.event)):
            if not value:
                raise Refused(f"a webhook needs {option}")
        properties = updates.given(options, CREATED)["properties"]
        body = {"properties": {**properties, "secret": _secret(options)}}
        _show(options, api.put(_path(api, options), body, new=True))
        return Exit.SUCCEEDED

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        wanted = options.new_secret or options.secret_file
        secret = {"properties": {"secret": _secret(options)}} if wanted else None
        patch = updates.changes(options, SETTINGS, secret, ["--new-secret"])
        _show(options, updates.replaced(api, _path(api, options), patch))
        return Exit.SUCCEEDED

    return calling(options, put)


def list_webhooks(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        webhooks = api.all(f"{lookup.account(api, options)}/webhooks")
        rows = [_row(each) for each in webhooks]
        output.show(options, {"value": webhooks}, Table(COLUMNS, rows, optional=("jobs",)))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        _show(options, api.get(_path(api, options)))
        return Exit.SUCCEEDED

    return calling(options, shown)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        along = "with its deliveries"
        deletes.agreed(options, f"the webhook '{options.name}'", lambda: along)
        return deletes.done(api, options, _path(api, options), options.name)

    return calling(options, gone)


def test(options: argparse.Namespace) -> int:
    def sent(api: Api) -> int:
        path = _path(api, options)
        before = {each["eventId"] for each in _tests(api, path)}
        api.post(f"{path}/test")
        until = client.monotonic() + TEST_PATIENCE
        while True:
            new = [each for each in _tests(api, path) if each["eventId"] not in before]
            if new and new[0]["attempts"]:
                _show_deliveries(options, new[:1])
                return Exit.SUCCEEDED if new[0]["status"] == "Delivered" else Exit.USAGE
            if client.monotonic() > until:
                output.aside(["The event was not sent yet: muster webhook deliveries shows it."])
                return Exit.WAIT_TIMED_OUT
            client.sleep(0.5)

    return calling(options, sent)


def deliveries(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        query = {"$top": options.top or None, "status": options.status}
        _show_deliveries(options, api.get(f"{_path(api, options)}/deliveries", query)["value"])
        return Exit.SUCCEEDED

    return calling(options, listed)


def replay(options: argparse.Namespace) -> int:
    def again(api: Api) -> int:
        body = {"eventIds": options.event} if options.event else None
        done = api.post(f"{_path(api, options)}/replay", body)
        output.show(options, done, Table(("replayed",), [[done["replayed"]]]))
        return Exit.SUCCEEDED

    return calling(options, again)


def _path(api: Api, options: argparse.Namespace) -> str:
    return under(lookup.account(api, options), "webhooks", options.name)


def _secret(options: argparse.Namespace) -> str:
    return inputs.password(options.secret_file, "Secret", is_new=True).reveal()


def _tests(api: Api, path: str) -> list[dict[str, Any]]:
    newest = api.get(f"{path}/deliveries", {"$top": 50})["value"]
    return [each for each in newest if each["kind"] == "test"]


def _show(options: argparse.Namespace, webhook: dict[str, Any]) -> None:
    output.show(options, webhook, Table(COLUMNS, [_row(webhook)], optional=("jobs",)))


def _row(webhook: dict[str, Any]) -> list[Any]:
    properties = webhook["properties"]
    return [
        webhook["name"],
        properties["url"],
        ", ".join(properties["events"]),
        ", ".join(properties.get("jobs", ())) or None,
        *(properties.get(name) for name in ("enabled", "pending", "delivered", "failed")),
    ]


def _show_deliveries(options: argparse.Namespace, items: list[dict[str, Any]]) -> None:
    rows = [
        [
            each["eventId"],
            moment(each["eventTime"]),
            ", ".join(each.get("events") or [each["kind"]]),
            each["kind"],
            each.get("jobName"),
            each["status"],
            each["attempts"],
            each.get("lastStatusCode"),
            moment(each["nextAttemptTime"]) if "nextAttemptTime" in each else None,
            each.get("lastError"),
        ]
        for each in items
    ]
    table = Table(
        DELIVERY, rows, optional=("next_attempt", "error"), hidden=("kind",), whole=("id",)
    )
    output.show(options, {"value": items}, table)
