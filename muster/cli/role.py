"""`muster role …`: what roles allow, and who has which role where."""

import argparse
from typing import Any
from uuid import UUID, uuid4

from muster.cli import deletes, names, output, scopes
from muster.cli.arguments import Parser, add_choice, command, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

DEFINITIONS = "/providers/Microsoft.Authorization/roleDefinitions"
ASSIGNMENTS = "/providers/Microsoft.Authorization/roleAssignments"
DEFINITION = ("role", "id", "description")
ASSIGNMENT = ("role", "principal", "type", "scope", "created", "name", "description")
TYPES = ("User", "Group", "ServicePrincipal", "Application")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    definitions = verbs_of(command(verbs, "definition", "look at roles: what each of them allows"))
    about, example = "list the roles that there are", "muster role definition list"
    verb(definitions, "list", list_definitions, about, example=example)
    example = 'muster role definition show "Job Operator"'
    one = verb(definitions, "show", show_definition, "show what a role allows", example=example)
    one.add_argument("role", metavar="ROLE", help="name or id")
    assignments = verbs_of(command(verbs, "assignment", "manage who has which role where"))
    about = "list the roles that hold at a scope: assigned there, above it and below it"
    example = "muster role assignment list --account night"
    one = verb(assignments, "list", list_assignments, about, example=example)
    one.add_argument("--principal", metavar="ID", help="only of this one")
    scopes.add(one, "that is looked at")
    about = "give a role to a user, a group or an application"
    example = 'muster role assignment create --role "Job Operator" --principal anna@example.org --account night'
    one = verb(assignments, "create", create, about, example=example)
    _add_whom(one, required=True)
    add_choice(one, "--principal-type", choices=TYPES, help="default: User")
    one.add_argument("--description", metavar="TEXT")
    one.add_argument(
        "--name", type=UUID, metavar="UUID", help="of the assignment; default: a new one"
    )
    scopes.add(one, "where it holds, and everywhere below", default=None)
    about = "show one assignment"
    example = "muster role assignment show 8f0f1c1e-52a5-4f2e-9c57-3f4b6d2a7c11"
    _named(verb(assignments, "show", show, about, example=example), required=True)
    about = "take a role away: by the assignment's name, or by role, principal and scope"
    example = "muster role assignment delete --role Reader --principal anna@example.org --account night --yes"
    one = _named(verb(assignments, "delete", delete, about, example=example), required=False)
    _add_whom(one, required=False)
    deletes.add(one)


def _add_whom(one: Parser, *, required: bool) -> None:
    one.add_argument("--role", required=required, metavar="ROLE", help="name or id")
    about = "subject (sub or oid) of the user's token, a group of it, or the principal of a service token"
    one.add_argument("--principal", required=required, metavar="ID", help=about)


def _named(one: Parser, *, required: bool) -> Parser:
    about = "uuid or resource id"
    one.add_argument("name", metavar="ASSIGNMENT", nargs=None if required else "?", help=about)
    default = "the whole installation" if required else "with a uuid, the whole installation"
    scopes.add(one, "where it was made", default)
    return one


def list_definitions(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all(DEFINITIONS)
        rows = [_definition(each) for each in items]
        output.show(options, {"value": items}, Table(DEFINITION, rows))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show_definition(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        item = api.get(_role(api, options.role))
        permissions = item["properties"]["permissions"]
        notes = [f"allows {each}" for one in permissions for each in one["actions"]]
        notes += [f"but not {each}" for one in permissions for each in one.get("notActions") or ()]
        output.show(options, item, Table(DEFINITION, [_definition(item)]), notes=notes)
        return Exit.SUCCEEDED

    return calling(options, shown)


def list_assignments(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all(f"{scopes.of(api, options)}{ASSIGNMENTS}")
        items = [each for each in items if options.principal in (None, _principal(each))]
        return _show(api, options, {"value": items}, items)

    return calling(options, listed)


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        properties = {
            "roleDefinitionId": _role(api, options.role),
            "principalId": options.principal,
            "principalType": options.principal_type,
            "description": options.description,
        }
        body = {"properties": {name: each for name, each in properties.items() if each is not None}}
        path = under(f"{scopes.named(api, options)}{ASSIGNMENTS}", str(options.name or uuid4()))
        made = api.put(path, body)
        return _show(api, options, made, [made])

    return calling(options, put)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        item = api.get(_meant(api, options)["id"])
        return _show(api, options, item, [item])

    return calling(options, shown)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        item = _meant(api, options)
        [row] = _rows(api, [item])
        role, principal, _, scope, *_ = row
        deletes.agreed(options, f"the role {role} of {principal} at {scope}")
        return deletes.done(api, options, item["id"], item["name"])

    return calling(options, gone)


def _meant(api: Api, options: argparse.Namespace) -> dict[str, Any]:
    """The one assignment that name, or role and principal at exactly this scope, say."""
    wanted = options.name
    role, principal = (str(getattr(options, each, None) or "") for each in ("role", "principal"))
    if wanted is None and not (role and principal):
        raise Refused("which assignment? Give its name, or --role and --principal")
    if wanted and wanted.startswith("/"):
        return api.get(wanted.rstrip("/"))
    scope = scopes.of(api, options) if wanted else scopes.named(api, options)
    items = api.all(f"{scope}{ASSIGNMENTS}")
    if wanted:
        fitting = [each for each in items if each["name"].lower() == wanted.lower()]
    else:
        key = _role(api, role).rpartition("/")[2]
        fitting = [
            each
            for each in items
            if _principal(each) == principal
            and each["properties"]["roleDefinitionId"].lower().endswith(key)
            and _scope(each).lower() == scope.lower()
        ]
    if not fitting:
        what = f"'{wanted}'" if wanted else f"of {role} to {principal} at {scopes.shown(scope)}"
        raise Refused(f"there is no role assignment {what}", Exit.NOT_FOUND)
    return fitting[0]


def _role(api: Api, text: str) -> str:
    """The id of a role, by its name or id."""
    wanted = text.rpartition("/")[2].lower()
    roles = {each["properties"]["roleName"]: each["name"] for each in api.all(DEFINITIONS)}
    for name, id in roles.items():
        if wanted in (name.lower(), name.lower().replace(" ", "-"), id.lower()):
            return f"{DEFINITIONS}/{id}"
    raise names.absent("role", text, list(roles))


def _show(api: Api, options: argparse.Namespace, document: Any, items: list[dict[str, Any]]) -> int:
    table = Table(ASSIGNMENT, _rows(api, items), optional=("description",))
    output.show(options, document, table)
    return Exit.SUCCEEDED


def _rows(api: Api, items: list[dict[str, Any]]) -> list[list[Any]]:
    roles = (
        {each["name"]: each["properties"]["roleName"] for each in api.all(DEFINITIONS)}
        if items
        else {}
    )
    rows = []
    for each in items:
        properties = each["properties"]
        id = properties["roleDefinitionId"].rpartition("/")[2].lower()
        rows.append(
            [
                roles.get(id, id),
                properties["principalId"],
                properties.get("principalType"),
                scopes.shown(_scope(each)),
                moment(properties.get("createdOn")),
                each["name"],
                properties.get("description"),
            ]
        )
    return rows


def _principal(item: dict[str, Any]) -> Any:
    return item["properties"]["principalId"]


def _scope(item: dict[str, Any]) -> str:
    return str(item["id"]).rpartition(ASSIGNMENTS)[0]


def _definition(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    return [properties["roleName"], item["name"], properties.get("description")]
