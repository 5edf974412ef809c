"""`muster server …`: the PostgreSQL servers that jobs run on."""

import argparse
from pathlib import Path
from typing import Any

from muster.cli import inputs, lookup, output
from muster.cli.arguments import Parser, add_choice, count, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

COLUMNS = ("name", "host", "port", "state", "version", "max_connections", "job_credential")
FILES = {  # option → property
    "ca_file": "caCertificate",
    "client_certificate_file": "clientCertificate",
    "client_key_file": "clientKey",
}
ENDPOINT = {  # likewise
    "host": "host",
    "port": "port",
    "ssl_mode": "sslMode",
    "authentication": "authentication",
    "maintenance_database": "maintenanceDatabase",
    "pooling": "pooling",
    "direct_host": "directHost",
}


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    one = verb(verbs, "add", add_server, "register a server, or create one")
    one.add_argument("name", metavar="NAME", help="its name in jobs and commands")
    one.add_argument(
        "--host", help="host name or address; without it Muster creates an embedded cluster"
    )
    one.add_argument("--port", type=count, help="default: 5432")
    modes = ("verify-full", "require", "disable")
    add_choice(one, "--ssl-mode", choices=modes, help="default: verify-full")
    methods = ("scram-sha-256", "md5", "password")
    weaker = "default: scram-sha-256; the others need Owner"
    add_choice(one, "--authentication", choices=methods, help=weaker)
    one.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="PEM of the CA that signed its certificate"
    )
    one.add_argument(
        "--client-certificate-file", type=Path, metavar="FILE", help="PEM of the client certificate"
    )
    one.add_argument(
        "--client-key-file",
        type=Path,
        metavar="FILE",
        help="PEM of the key of the client certificate",
    )
    one.add_argument("--maintenance-database", metavar="NAME", help="default: postgres")
    add_choice(one, "--pooling", choices=("none", "session", "transaction"))
    one.add_argument(
        "--direct-host", metavar="HOST[:PORT]", help="host for connections that bypass the pooler"
    )
    one.add_argument(
        "--max-connections", type=count, metavar="N", help="for all sessions of Muster on it"
    )
    one.add_argument("--job-credential", metavar="CREDENTIAL", help="credential that jobs use")
    one.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")
    one.add_argument(
        "--admin", metavar="LOGIN", help="login that creates databases; jobs never use it"
    )
    one.add_argument("--admin-password-file", type=Path, metavar="FILE")
    one.add_argument("--location", default="local", help="default: local")
    one.add_argument("--resource-group", metavar="GROUP", help="default: the only one there is")
    one.add_argument("--subscription", metavar="NAME", help="default: the only one there is")
    one.add_argument(
        "--create", action="store_true", help="create the subscription and resource group if absent"
    )
    one.add_argument("--replace", action="store_true", help="replace a server of that name")
    one = verb(verbs, "check", check_server, "check whether a server can be reached")
    one.add_argument("name", metavar="NAME", help="the server")
    verb(verbs, "list", list_servers, "list all servers that the token can see")


def add_server(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        body = {"location": options.location, "properties": _properties(options)}
        path = under(lookup.group(api, options), *lookup.SQL.split("/"), "servers", options.name)
        made = api.put(path, body, new=not options.replace)
        output.show(options, made, Table(COLUMNS, [_row(made)]), notes=_notes(made))
        return Exit.SUCCEEDED

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


def list_servers(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        servers = lookup.servers(api)
        output.show(options, {"value": servers}, Table(COLUMNS, [_row(each) for each in servers]))
        return Exit.SUCCEEDED

    return calling(options, show)


def _properties(options: argparse.Namespace) -> dict[str, Any]:
    endpoint = {
        name: getattr(options, option)
        for option, name in ENDPOINT.items()
        if getattr(options, option) is not None
    }
    for option, name in FILES.items():
        if file := getattr(options, option):
            endpoint[name] = inputs.text(file)
    if endpoint and not options.host:
        raise Refused("use --host: the other options say how it is reached")
    properties: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
    if options.max_connections is not None:
        properties["maxConnections"] = options.max_connections
    if options.job_credential:
        properties["jobCredential"] = options.job_credential
    if options.label:
        properties["labels"] = dict(_label(each) for each in options.label)
    if options.admin:
        properties["administratorLogin"] = options.admin
        prompt, is_new = f"Password of {options.admin}", not options.host
        secret = inputs.password(options.admin_password_file, prompt, is_new=is_new)
        properties["administratorLoginPassword"] = secret.reveal()
    return properties


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise Refused(f"'{text}' is no label: expected KEY=VALUE")
    return key, value


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


def _notes(server: dict[str, Any]) -> list[str]:
    conditions = server["properties"].get("conditions") or []
    return [f"{each['type']}: {each['message']}" for each in conditions]
