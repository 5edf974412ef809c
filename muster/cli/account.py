"""`muster account …`: job accounts and their diagnosis."""

import argparse
from typing import Any

from muster.cli import account_changes, account_servers, events, lookup, output, run_attempts
from muster.cli.account_changes import COLUMNS
from muster.cli.arguments import Parser, may_wait, verb, verbs_of
from muster.cli.client import Api, Refused, calling, there_already, under
from muster.cli.exits import Exit
from muster.cli.output import Table

DOCTOR = (
    "account",
    "state",
    "healthy",
    "step",
    "since",
    "waits_for",
    "last_error",
    "advice",
    "paused",
)


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "create an account and wait until its engine runs"
    example = "muster account create night --database eu1/jobs --capacity 200"
    one = may_wait(verb(verbs, "create", create, about, example=example))
    one.add_argument("name", metavar="NAME")
    one.add_argument(
        "--database", required=True, metavar="SERVER/DATABASE", help="created if it does not exist"
    )
    account_changes.add_settings(one)
    one.add_argument("--location", default="local", help="default: local")
    verb(
        verbs,
        "list",
        list_accounts,
        "list all accounts that the token can see",
        example="muster account list",
    )
    _of_name(
        verb(
            verbs,
            "show",
            show_account,
            "show an account and its engine",
            example="muster account show night",
        )
    )
    about = "explain why an account is slow, stuck or failed, and what to do"
    _of_name(verb(verbs, "doctor", doctor, about, example="muster account doctor night"))
    one = _of_name(
        verb(
            verbs,
            "pause",
            pause,
            "start nothing new until resume",
            example="muster account pause night --cancel-running",
        )
    )
    one.add_argument("--cancel-running", action="store_true", help="also cancel running executions")
    _of_name(
        verb(
            verbs,
            "resume",
            resume,
            "start runs again after pause",
            example="muster account resume night",
        )
    )
    one = _of_name(
        verb(
            verbs,
            "events",
            events.of_account,
            "list the events of an account",
            example="muster account events night --follow",
        )
    )
    events.add_options(one)
    about = "start the engine of an account whose control database was restored or copied"
    _of_name(
        verb(verbs, "acknowledge", acknowledge, about, example="muster account acknowledge night")
    )
    account_servers.add(verbs)
    account_changes.add(verbs, _of_name)


def create(options: argparse.Namespace) -> int:
    """The control database and the account, which stand on the same server."""

    def put(api: Api) -> int:
        name, _, database = options.database.partition("/")
        if not (name and database):
            raise Refused(f"'{options.database}' is no database: expected SERVER/DATABASE")
        server = lookup.server(api, name)
        control = under(server, "databases", database)
        path = under(server, "jobAgents", options.name)
        if api.find(control) is None:
            if api.find(path):
                raise there_already(path)  # before a database is made for nothing
            api.put(control, {"location": options.location}, is_last=False)
        properties: dict[str, Any] = {"databaseId": f"{server}/databases/{database}"}
        body: dict[str, Any] = {"location": options.location, "properties": properties}
        if options.capacity is not None:
            body["sku"] = {"name": "MUSTER", "capacity": options.capacity}
        properties |= _settings(options)
        made = api.put(path, body, new=True)
        return account_changes.show(options, made)

    return calling(options, put)


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    given = {
        "defaultCredential": options.default_credential,
        "haltAfterConsecutiveSameError": options.halt_after_same_errors,
        "runAttempts": run_attempts.read(options),
        "autoDisable": options.auto_disable,
    }
    return {name: value for name, value in given.items() if value is not None}


def list_accounts(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        accounts = lookup.accounts(api)
        rows = [account_changes.row(each) for each in accounts]
        output.show(options, {"value": accounts}, Table(COLUMNS, rows))
        return Exit.SUCCEEDED

    return calling(options, show)


def show_account(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        return account_changes.show(options, api.get(lookup.account(api, options)))

    return calling(options, show)


def doctor(options: argparse.Namespace) -> int:
    """Of one account, or of every one of a name."""

    def examine(api: Api) -> int:
        wanted = options.account
        ids = lookup.named(api, wanted) if wanted else [lookup.account(api, options)]
        diagnoses = {id: api.post(f"{id}/doctor") for id in ids}
        if output.is_for_people(options):
            for id, diagnosis in diagnoses.items():
                print("\n".join(map(output.clean, _lines(id, diagnosis))))
        else:
            document = next(iter(diagnoses.values())) if len(diagnoses) == 1 else diagnoses
            rows = [_diagnosis(id, diagnosis) for id, diagnosis in diagnoses.items()]
            output.show(options, document, Table(DOCTOR, rows))
        healthy = all(diagnosis["healthy"] for diagnosis in diagnoses.values())
        return Exit.SUCCEEDED if healthy else Exit.SOME_FAILED

    return calling(options, examine)


def pause(options: argparse.Namespace) -> int:
    query = {"cancelRunning": "true"} if options.cancel_running else {}
    return _set(options, "pause", query)


def resume(options: argparse.Namespace) -> int:
    return _set(options, "resume", {})


def acknowledge(options: argparse.Namespace) -> int:
    def post(api: Api) -> int:
        id = lookup.account(api, options)
        reply = api.post(f"{id}/acknowledge")
        row = [id.rsplit("/", 1)[-1], reply["acknowledged"]]
        output.show(options, reply, Table(("account", "acknowledged"), [row]))
        return Exit.SUCCEEDED

    return calling(options, post)


def _of_name(made: Parser) -> Parser:
    help_text = (
        "NAME, SERVER/NAME or resource id; default: MUSTER_ACCOUNT, the context's, or the only one"
    )
    made.add_argument("account", metavar="NAME", nargs="?", help=help_text)
    return made


def _set(options: argparse.Namespace, action: str, query: dict[str, str]) -> int:
    def post(api: Api) -> int:
        id = lookup.account(api, options)
        reply = api.post(f"{id}/{action}", query=query)
        row = [id.rsplit("/", 1)[-1], reply["paused"], reply.get("canceled")]
        columns = ("account", "paused", "cancelled_runs")
        output.show(options, reply, Table(columns, [row], optional=("cancelled_runs",)))
        return Exit.SUCCEEDED

    return calling(options, post)


def _diagnosis(id: str, diagnosis: dict[str, Any]) -> list[Any]:
    wrong = diagnosis.get("lastError")
    return [
        id.rsplit("/", 1)[-1],
        diagnosis["state"],
        diagnosis["healthy"],
        diagnosis["step"],
        diagnosis["since"],
        diagnosis.get("waitsFor"),
        f"{wrong['code']}: {wrong['message']}" if wrong else None,
        " ".join(diagnosis["advice"]) or None,
        diagnosis.get("paused", False),
    ]


def _lines(id: str, diagnosis: dict[str, Any]) -> list[str]:
    health = "needs help" if diagnosis["advice"] else "not ready"
    health = "healthy" if diagnosis["healthy"] else health
    lines = [f"{id.rsplit('/', 1)[-1]}: {diagnosis['state']}, {health}"]
    lines.append(
        f"  step       {diagnosis['step']} since {diagnosis['since']}: {diagnosis['does']}"
    )
    if diagnosis.get("paused"):
        lines.append("  paused     nothing new starts until: muster account resume")
    for label, key in (
        ("waits for", "waitsFor"),
        ("tries", "tries"),
        ("deadline", "givesUpAt"),
        ("next check", "looksAgainAt"),
    ):
        if diagnosis.get(key):
            lines.append(f"  {label:<10} {diagnosis[key]}")
    if engine := diagnosis.get("engine"):
        beat = engine["lastHeartbeat"]
        lines.append(
            f"  engine     {engine['state']}, epoch {engine['epoch']}, last heartbeat {beat}"
        )
    for host in diagnosis.get("hosts") or []:
        beat = f", last heartbeat {host['lastHeartbeat']}" if host.get("lastHeartbeat") else ""
        lines.append(f"  host       {host['state']}{_ended(host)}{beat}")
    if wrong := diagnosis.get("lastError"):
        lines.append(f"  last error {wrong['code']}: {wrong['message']}")
    lines += [f"  safer      {advice}" for advice in diagnosis.get("hardening") or []]
    return lines + [f"  → {advice}" for advice in diagnosis["advice"]]


def _ended(host: dict[str, Any]) -> str:
    reason = ": ".join(host[key] for key in ("reason", "message") if host.get(key))
    return f" ({reason})" if reason else ""
