"""`muster server …`: the PostgreSQL servers that jobs run on."""

import argparse
from typing import Any

from muster.cli import deletes, histories, lookup, output, server_settings, updates
from muster.cli.arguments import Commands, Parser, may_wait, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.server_settings import SETTINGS

COLUMNS = ("name", "host", "port", "state", "version", "max_connections", "job_credential")
DISCOVERED = ("database", "owner", "size_bytes", "target", "reason")
TYPE = "Microsoft.Sql/servers"
DROP = {"forceDeletionTypes": "Microsoft.Sql/servers/databases"}


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    _add_add(verbs)
    about = "check whether a server can be reached"
    _named(verb(verbs, "check", check_server, about, example="muster server check eu1"))
    about = "list the databases that stand on a server, and which of them jobs leave out"
    _named(verb(verbs, "discover", discover, about, example="muster server discover eu1"))
    about = "list all servers that the token can see"
    verb(verbs, "list", list_servers, about, example="muster server list")
    about = "show a server and what is wrong with it"
    _named(verb(verbs, "show", show, about, example="muster server show eu1"))
    example = "muster server update eu1 --max-connections 20 --label region=eu"
    one = _named(verb(verbs, "update", update, "change what is named of a server", example=example))
    may_wait(one)
    updates.add(one, SETTINGS)
    server_settings.add_password(one, update=True)
    about = "delete a server with its pools and job accounts"
    one = _named(verb(verbs, "delete", delete, about, example="muster server delete eu1 --yes"))
    about = "also while target groups or steps name it"
    one.add_argument("--force", action="store_true", help=about)
    about = "also while executions run on it"
    one.add_argument("--drop-in-use", action="store_true", help=about)
    deletes.add(may_wait(one))
    about = "list the state changes of a server"
    histories.add(
        _named(verb(verbs, "history", history, about, example="muster server history eu1"))
    )
    about = "check whether a name is free: names of servers are unique in an installation"
    one = _named(
        verb(verbs, "check-name", check_name, about, example="muster server check-name eu2")
    )
    one.add_argument("--subscription", metavar="NAME", help="default: the only one there is")


def _add_add(verbs: Commands) -> None:
    about = "register a server, or create one"
    example = "muster server add eu1 --host db1.internal --job-credential fleet-login"
    one = verb(verbs, "add", add_server, about, example=example, aliases=["create"])
    may_wait(one)
    one.add_argument("name", metavar="NAME", help="its name in jobs and commands")
    updates.add_settings(one, server_settings.ADDED)
    server_settings.add_password(one, update=False)
    one.add_argument("--location", default="local", help="default: local")
    one.add_argument("--resource-group", metavar="GROUP", help="default: the only one there is")
    one.add_argument("--subscription", metavar="NAME", help="default: the only one there is")
    one.add_argument(
        "--create", action="store_true", help="create the subscription and resource group if absent"
    )
    one.add_argument("--replace", action="store_true", help="replace a server of that name")


def _named(one: Parser) -> Parser:
    one.add_argument("name", metavar="NAME")
    return one


def add_server(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        body = {"location": options.location, **_body(options)}
        path = under(lookup.group(api, options), *lookup.SQL.split("/"), "servers", options.name)
        return _show(options, api.put(path, body, new=not options.replace))

    return calling(options, put)


def check_server(options: argparse.Namespace) -> int:
    def check(api: Api) -> int:
        answer = api.post(f"{lookup.server(api, options.name)}/check")
        reachable = answer["reachable"]
        why = None if reachable else f"{answer['code']}: {answer['message']}"
        row = [options.name, "reachable" if reachable else "not reachable", why]
        output.show(options, answer, Table(("server", "contact", "why"), [row]))
        return Exit.SUCCEEDED if reachable else Exit.SOME_FAILED

    return calling(options, check)


def discover(options: argparse.Namespace) -> int:
    def ask(api: Api) -> int:
        answer = api.post(f"{lookup.server(api, options.name)}/discover")
        rows = [
            [each[name] for name in ("name", "owner", "sizeBytes", "included", "reason")]
            for each in answer["value"]
        ]
        output.show(options, answer, Table(DISCOVERED, rows, optional=("reason",)))
        return Exit.SUCCEEDED

    return calling(options, ask)


def list_servers(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        servers = lookup.servers(api)
        output.show(options, {"value": servers}, Table(COLUMNS, [_row(each) for each in servers]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        return _show(options, api.get(lookup.server(api, options.name)))

    return calling(options, shown)


def update(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        changes = server_settings.changes(options)
        return _show(options, updates.patched(api, lookup.server(api, options.name), changes))

    return calling(options, patch)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = lookup.server(api, options.name)
        deletes.agreed(options, f"the server '{options.name}'", lambda: _inside(api, path))
        query = {
            "force": "true" if options.force else None,
            **(DROP if options.drop_in_use else {}),
        }
        return deletes.done(api, options, path, options.name, query)

    return calling(options, gone)


def _inside(api: Api, path: str) -> str:
    embedded = api.get(path)["properties"].get("embedded")
    kinds = {"database": "databases", "pool": "elasticPools", "job account": "jobAgents"}
    inside = {what: [f"{path}/{kind}"] for what, kind in kinds.items()}
    stays = "with all data in its cluster" if embedded else "its databases stay on it"
    return deletes.counted(api, inside, stays)


def history(options: argparse.Namespace) -> int:
    return histories.show(options, lambda api, options: lookup.server(api, options.name))


def check_name(options: argparse.Namespace) -> int:
    def ask(api: Api) -> int:
        path = (
            f"{lookup.subscription(api, options.subscription)}/{lookup.SQL}/checkNameAvailability"
        )
        answer = api.post(path, {"name": options.name, "type": TYPE})
        row = [options.name, answer["available"], answer.get("message")]
        output.show(options, answer, Table(("name", "available", "why"), [row]))
        return Exit.SUCCEEDED

    return calling(options, ask)


def _body(options: argparse.Namespace) -> dict[str, Any]:
    body = updates.given(options, server_settings.ADDED)
    properties = body.setdefault("properties", {})
    registered = server_settings.is_registered(body)
    if "endpoint" in properties and not registered:
        raise Refused("use --host: the other options say how it is reached")
    if options.admin:
        secret = server_settings.password(options, options.admin, is_new=not registered)
        properties[server_settings.PASSWORD] = secret
    return body


def _show(options: argparse.Namespace, server: dict[str, Any]) -> int:
    table = Table(COLUMNS, [_row(server)])
    output.show(options, server, table, notes=output.conditions(server))
    return Exit.SUCCEEDED


def _row(server: dict[str, Any]) -> list[Any]:
    properties = server.get("properties") or {}  # nothing of one that only lies above
    endpoint = properties.get("endpoint") or {}
    host = endpoint.get("host") or ",".join(endpoint.get("hosts") or [])
    return [
        server["name"],
        host or None,
        endpoint.get("port"),
        properties.get("state"),
        properties.get("serverVersion"),
        properties.get("maxConnections"),
        properties.get("jobCredential"),
    ]
