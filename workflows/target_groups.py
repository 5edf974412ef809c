"""Target groups of an account, and what they resolve to now."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from muster.core.errors import FieldError, InvalidRequest, Unavailable, refuse
from muster.core.ids import ResourceId
from muster.core.worker_thread import compute
from nodeagent.items import PutTargetGroup
from workflows import engine_requests, items, references, target_servers
from workflows.access import account_of
from workflows.accesscache import Access
from workflows.items import Family
from workflows.model.item import WrittenItem
from workflows.model.resource import Body, Call
from workflows.references import Reference, Wrong
from workflows.services import Services
from workflows.target_servers import Named, ServerName
from workflows.validation.target_group import MEMBERS, MOST_ERRORS
from workflows.validation.target_group import target_group as validate

REFERENCES = {
    "targetGroup": "targetGroups",
    "refreshCredential": "credentials",
    "credential": "credentials",
}
READ_AT_RUN_TIME = {"SqlQuery", "SqlShardMap"}  # rows may name any server of the directory


def shown(properties: dict[str, Any], here: Access) -> dict[str, Any]:
    """Changes the members in place: there may be ten thousand."""
    for member in properties["members"]:
        for name, kind in REFERENCES.items():
            if name in member:
                member[name] = references.shown(member[name], kind, here)
    return properties


FAMILY = Family("targetGroups", shown)


class Members(msgspec.Struct, frozen=True):
    """What the members of a group name: each name once, at the first member that has it."""

    errors: list[FieldError]
    wrong_references: list[Wrong] = []
    servers: list[ServerName] = []
    any_server: bool = False


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Replaces all members; one that stays the same keeps its targetId."""
    here = await items.enter(services, call, id)
    account = account_of(id)
    members = await compute(_read, account, id.name, body.properties, size=body.size)
    errors = members.errors
    errors += await references.refused(services, call, account, members.wrong_references)
    named = await _check_servers(services, call, account, members)
    refuse(errors + named.errors)
    documents = await compute(_documents, body.properties["members"], size=body.size)
    await _check_nested(services, call, id, documents)
    await target_servers.allow(services, call, here, named.servers)
    command = PutTargetGroup(
        name=id.name, document={"members": documents}, condition=items.condition(call)
    )
    try:
        return await FAMILY.put(services, call, id, here, command)
    except InvalidRequest as refused:
        if refused.code != "InvalidTargetServer":
            raise
        await target_servers.refuse_others(services, call, account, members.servers, named.servers)
        raise Unavailable(  # every server was found above: only the account's copy is older
            "A server of the group is not in the directory of the job account yet. That takes seconds; "
            "the same request can be sent again.",
            code="ServerNotYetKnown",
            target=refused.target,
            retry_after=1,
        ) from refused


async def _check_servers(
    services: Services, call: Call, account: ResourceId, members: Members
) -> Named:
    """Forbidden unless the caller may use every server that the members can lead to, now or later."""
    if members.any_server:
        everywhere = ResourceId(account.pairs[:1])
        await target_servers.demand(
            services, call, target_servers.USE_AS_TARGET, everywhere, account
        )
    return await target_servers.check_named(services, call, account, members.servers)


async def _check_nested(
    services: Services, call: Call, id: ResourceId, documents: list[dict[str, Any]]
) -> None:
    nested = {each["targetGroup"]["name"] for each in documents if "targetGroup" in each}
    if nested:
        await target_servers.check_reached(services, call, id, "targetGroups", nested, MEMBERS)


async def resolve(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """What the group yields now; only the engine can tell, since it alone reaches the targets.

    It lists databases, so the caller must be allowed to use their servers.
    """
    await target_servers.check_reached(
        services, call, id, "targetGroups", [id.name], "targetGroupName"
    )
    return await engine_requests.ask(
        services, call, id, "resolve", {"targetGroup": id.name}, FAMILY.action("resolve/action")
    )


def _read(account: ResourceId, name: str, properties: dict[str, Any]) -> Members:
    members: list[dict[str, Any]] = properties["members"]
    errors = validate(name, properties)
    if len(errors) >= MOST_ERRORS or any(error.code == "QuotaExceeded" for error in errors):
        return Members(errors)
    servers: dict[tuple[str, str | None], ServerName] = {}
    for at, member in enumerate(members):
        if server := member.get("serverName"):
            key = (server, member.get("subscriptionId"))
            if key not in servers:
                servers[key] = ServerName(f"{MEMBERS}[{at}].serverName", *key)
    return Members(
        errors,
        references.wrong(account, _references(members)),
        list(servers.values()),
        any(member["type"] in READ_AT_RUN_TIME for member in members),
    )


def _references(members: list[dict[str, Any]]) -> Iterator[Reference]:
    seen: set[tuple[str, str]] = set()
    for at, member in enumerate(members):
        for name, kind in REFERENCES.items():
            text = member.get(name)
            if text and (kind, text) not in seen:
                seen.add((kind, text))
                yield Reference(f"{MEMBERS}[{at}].{name}", text, kind)


def _documents(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    reference = cache(references.document)  # thousands of members may name one credential

    def document(member: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {name: value for name, value in member.items() if value != ""}
        made.setdefault("membershipType", "Include")
        for name in REFERENCES:
            if name in made:
                made[name] = reference(made[name])
        return made

    return [document(member) for member in members]
