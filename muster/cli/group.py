"""`muster group …`: target groups, rules that are resolved to databases at each run."""

import argparse
import json
from pathlib import Path
from typing import Any

from muster.cli import deletes, examinations, inputs, lookup, output
from muster.cli.arguments import Parser, of_account, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

KINDS = {  # option → type and the properties that its parts are
    "server": ("SqlServer", ("serverName",)),
    "database": ("SqlDatabase", ("serverName", "databaseName")),
    "pool": ("SqlElasticPool", ("serverName", "elasticPoolName")),
    "schema": ("SqlSchema", ("serverName", "databaseName", "schemaPattern")),
    "group": ("TargetGroup", ("targetGroup",)),
}
FORMS = {
    "server": ("SERVER", "all databases of a server"),
    "database": ("SERVER/DATABASE", "one database, or those that fit a pattern with * and ?"),
    "pool": ("SERVER/POOL", "the databases of an elastic pool"),
    "schema": (
        "SERVER/DATABASE/PATTERN",
        "schemas that fit a pattern of LIKE (%%, _); DATABASE may be a pattern with * and ?",
    ),
    "group": ("GROUP", "the targets of another group"),
}
NAMES = ("serverName", "databaseName", "elasticPoolName", "schemaPattern")
LISTED = {"SqlServer", "SqlElasticPool", "SqlSchema"}  # found by asking a server, so by a login
LABELLED = {"server", "database"}
MEMBER = ("membership", "type", "server", "database", "pool", "schema", "group", "labels")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    one = of_account(
        verb(
            verbs,
            "create",
            create,
            "create a target group from its members",
            example="muster group create tenants --server eu1 --exclude-database eu1/jobs",
        )
    )
    _members_options(one)
    one.add_argument(
        "--replace", action="store_true", help="give a group of that name exactly these members"
    )
    example = "muster group add tenants --exclude-database eu1/jobs"
    about = "add members to a target group; the others stay"
    _members_options(of_account(verb(verbs, "add", add_members, about, example=example)))
    example = "muster group remove tenants --server eu2"
    about = "remove members from a target group; the others stay"
    one = of_account(verb(verbs, "remove", remove_members, about, example=example))
    _members_options(one, removes=True)
    example = "muster group delete tenants --yes"
    about = "delete a target group that no job and no other group names"
    one = of_account(verb(verbs, "delete", delete, about, example=example))
    one.add_argument("name", metavar="NAME")
    deletes.add(one)
    one = of_account(
        verb(
            verbs,
            "show",
            show_group,
            "show the members of a group",
            example="muster group show tenants",
        )
    )
    one.add_argument("name", metavar="NAME")
    of_account(
        verb(
            verbs,
            "list",
            list_groups,
            "list the target groups of an account",
            example="muster group list",
        )
    )
    about = "show the targets of a group now, and what is left out, missing or unreachable, and why"
    one = of_account(verb(verbs, "resolve", resolve, about, example="muster group resolve tenants"))
    one.add_argument("name", metavar="NAME")
    about = (
        "check that steps can connect to each target of a group; shows the GRANTs that are missing"
    )
    one = of_account(
        verb(verbs, "doctor", examinations.doctor, about, example="muster group doctor tenants")
    )
    one.add_argument("name", metavar="NAME")


def _members_options(one: argparse.ArgumentParser, *, removes: bool = False) -> None:
    one.add_argument("name", metavar="NAME")
    for kind, (form, about) in FORMS.items():
        one.add_argument(f"--{kind}", action="append", default=[], metavar=form, help=about)
    for kind, (form, _) in FORMS.items():
        one.add_argument(
            f"--exclude-{kind}", action="append", default=[], metavar=form, help="wins over include"
        )
    if removes:
        one.set_defaults(labels=None, exclude_labels=None, credential=None, file=None)
        return
    one.add_argument(
        "--labels",
        metavar="SELECTOR",
        help="of --server and --database: only databases with such labels, as 'tier=gold,!legacy'",
    )
    one.add_argument(
        "--exclude-labels",
        metavar="SELECTOR",
        help="of --exclude-server and --exclude-database: only databases with such labels",
    )
    one.add_argument(
        "--credential", metavar="NAME", help="credential that lists the databases and logs in"
    )
    one.add_argument(
        "--file", type=Path, help='members as JSON, {"members": […]} or a list; - is stdin'
    )


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        account = lookup.account(api, options)
        members = _given(options, account)
        path = under(account, "targetGroups", options.name)
        made = api.put(path, {"properties": {"members": members}}, new=not options.replace)
        output.show(options, made, _members(made))
        return Exit.SUCCEEDED

    return calling(options, put)


def add_members(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        account = lookup.account(api, options)
        path = under(account, "targetGroups", options.name)
        members = [*api.latest(path)["properties"]["members"], *_given(options, account)]
        made = api.put(path, {"properties": {"members": members}}, etag=api.seen_etag(path))
        output.show(options, made, _members(made))
        return Exit.SUCCEEDED

    return calling(options, put)


def remove_members(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        account = lookup.account(api, options)
        wanted = [_key(each) for each in _given(options, account)]
        path = under(account, "targetGroups", options.name)
        members = api.latest(path)["properties"]["members"]
        there = {_key(each) for each in members}
        if absent := [key for key in wanted if key not in there]:
            membership, type, *names = absent[0]
            what = f"{membership.lower()} {type} {'/'.join(filter(None, names))}"
            raise Refused(f"the group '{options.name}' has no member '{what}'", Exit.NOT_FOUND)
        kept = [each for each in members if _key(each) not in wanted]
        made = api.put(path, {"properties": {"members": kept}}, etag=api.seen_etag(path))
        output.show(options, made, _members(made))
        return Exit.SUCCEEDED

    return calling(options, put)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = under(lookup.account(api, options), "targetGroups", options.name)
        deletes.agreed(options, f"the target group '{options.name}'")
        return deletes.done(api, options, path, options.name)

    return calling(options, gone)


def _key(member: dict[str, Any]) -> tuple[str, ...]:
    """Which member is meant: neither login nor labels; PostgreSQL's own names with regard to case."""
    group = (member.get("targetGroup") or "").rpartition("/")[2]
    names = [member.get(name) or "" for name in NAMES]
    server, database, pool, schemas = names
    membership = member.get("membershipType") or "Include"
    return (
        membership,
        member["type"],
        server.lower(),
        database,
        pool.lower(),
        schemas,
        group.lower(),
    )


def _given(options: argparse.Namespace, account: str) -> list[dict[str, Any]]:
    members = [*_from_file(options.file), *_from_options(options, account)]
    if not members:
        raise Refused("a group needs members: --server, --database, … or --file")
    return members


def show_group(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        group = api.get(under(lookup.account(api, options), "targetGroups", options.name))
        output.show(options, group, _members(group))
        return Exit.SUCCEEDED

    return calling(options, show)


def list_groups(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        groups = api.all(f"{lookup.account(api, options)}/targetGroups")
        rows = [[each["name"], len(each["properties"]["members"])] for each in groups]
        output.show(options, {"value": groups}, Table(("name", "members"), rows))
        return Exit.SUCCEEDED

    return calling(options, show)


def resolve(options: argparse.Namespace) -> int:
    def ask(api: Api) -> int:
        resolution = resolved(api, lookup.account(api, options), options.name)
        output.show(options, resolution, _resolved(resolution), notes=[counted(resolution)])
        if not (resolution.get("unreachable") or resolution.get("missing")):
            return Exit.SUCCEEDED
        return Exit.SOME_FAILED if resolution["count"] else Exit.ALL_FAILED

    return calling(options, ask)


def resolved(api: Api, account: str, name: str) -> dict[str, Any]:
    return api.post(under(account, "targetGroups", name, "resolve"))


def counted(resolution: dict[str, Any]) -> str:
    text = output.many(resolution["count"], "target")
    if resolution.get("truncated"):
        text += f", the first {len(resolution['targets'])} shown"
        if not_shown := resolution.get("notShownCount"):
            text += f" ({not_shown} lines are not shown in all)"
    if left := resolution.get("leftOutCount", len(resolution.get("leftOut", []))):
        text += f", {left} left out"
    if missing := resolution.get("missing"):
        text += f", {len(missing)} missing"
    away = resolution.get("unreachable", [])
    databases = sum(1 for each in away if each.get("databaseName"))
    for number, kind in ((len(away) - databases, "server"), (databases, "database")):
        if number:
            text += f", {output.many(number, kind)} unreachable"
    return text + "."


def _resolved(resolution: dict[str, Any]) -> Table:
    """Targets, what is left out or missing and servers that can't be asked, in one table."""
    rows = [_target(each, "target", _unchecked(each)) for each in resolution["targets"]]
    rows += [_target(each, "left out", _why(each)) for each in resolution.get("leftOut", [])]
    rows += [_target(each, "missing", "no such database") for each in resolution.get("missing", [])]
    rows += [
        _target(each, "unreachable", f"{each['code']}: {each['message']}")
        for each in resolution.get("unreachable", [])
    ]
    columns = ("server", "database", "schema", "pool", "is", "rule", "reason")
    return Table(columns, rows, optional=("schema", "pool", "rule", "reason"))


def _unchecked(each: dict[str, Any]) -> str | None:
    """Of a named database whose existence could not be checked."""
    if (why := each.get("unchecked")) is None:
        return None
    return f"not checked whether it exists: {why['code']}"


def _why(each: dict[str, Any]) -> str:
    by = each.get("excludedBy")
    why = f"{each['reason']} by {by}" if by else str(each["reason"])
    return why if each.get("exists", True) else f"{why}; no such database"


def _target(each: dict[str, Any], what: str, reason: str | None) -> list[Any]:
    names = ("serverName", "databaseName", "schemaName", "elasticPoolName")
    return [*(each.get(name) for name in names), what, _rule(each), reason]


def _rule(each: dict[str, Any]) -> str | None:
    """The member that decided, with its position in its group."""
    member = each.get("member")
    return None if member is None else f"{member['targetGroup']}[{member['position']}]"


def _from_options(options: argparse.Namespace, account: str) -> list[dict[str, Any]]:
    made = []
    for membership in ("Include", "Exclude"):
        labels = options.labels if membership == "Include" else options.exclude_labels
        labelled = 0
        for kind in KINDS:
            option = kind if membership == "Include" else f"exclude_{kind}"
            for text in getattr(options, option):
                member = {"membershipType": membership, **_member(kind, text, account)}
                if options.credential and membership == "Include" and kind != "group":
                    member |= _login(member, f"{account}/credentials/{options.credential}")
                if labels and kind in LABELLED:
                    member["labels"] = labels
                    labelled += 1
                made.append(member)
        if labels and not labelled:
            prefix = "" if membership == "Include" else "exclude-"
            raise Refused(f"--{prefix}labels needs --{prefix}server or --{prefix}database")
    return made


def _member(kind: str, text: str, account: str) -> dict[str, Any]:
    type, names = KINDS[kind]
    parts = text.split("/", len(names) - 1)
    if len(parts) != len(names) or not all(parts):
        raise Refused(f"'{text}' is no {kind}: expected {FORMS[kind][0]}")
    member = {"type": type, **dict(zip(names, parts, strict=True))}
    if kind == "schema" and member["databaseName"] == "*":
        del member["databaseName"]
    if kind == "group":
        member["targetGroup"] = f"{account}/targetGroups/{text}"
    return member


def _login(member: dict[str, Any], credential: str) -> dict[str, str]:
    document = {"credential": credential}
    listed = member["type"] in LISTED or {"*", "?"} & set(member.get("databaseName", ""))
    return document | {"refreshCredential": credential} if listed else document


def _from_file(file: Path | None) -> list[dict[str, Any]]:
    if file is None:
        return []
    try:
        document = json.loads(inputs.text(file))
    except ValueError as error:
        raise Refused(f"{file} is no JSON: {error}") from error
    members = document.get("members") if isinstance(document, dict) else document
    if not isinstance(members, list) or not all(isinstance(each, dict) for each in members):
        raise Refused(f'{file}: expected {{"members": [{{"type": …}}, …]}} or a list of members')
    return members


def _members(group: dict[str, Any]) -> Table:
    rows = [
        [
            each.get("membershipType"),
            each["type"],
            each.get("serverName"),
            each.get("databaseName"),
            each.get("elasticPoolName"),
            each.get("schemaPattern"),
            (each.get("targetGroup") or "").rsplit("/", 1)[-1] or None,
            each.get("labels"),
        ]
        for each in group["properties"]["members"]
    ]
    return Table(MEMBER, rows, optional=MEMBER[2:])
