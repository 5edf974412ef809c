"""Target groups of an account, and what they resolve to now."""

from collections.abc import Iterator
from typing import Any

from muster.core.errors import Conflict, InvalidRequest, Unavailable, refuse
from muster.core.ids import ResourceId
from nodeagent.items import Ask, PutTargetGroup
from workflows import engine_requests, items, references, target_servers
from workflows.access import account_of
from workflows.accesscache import Access
from workflows.items import Family
from workflows.model.item import WrittenItem
from workflows.model.resource import Body, Call
from workflows.references import Reference
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
PATIENCE = (
    25.0  # seconds for the engine to answer; the declaration of the action adds them to the limit
)


def shown(properties: dict[str, Any], here: Access) -> dict[str, Any]:
    return {"members": [_shown(member, here) for member in properties["members"]]}


FAMILY = Family("targetGroups", shown)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Replaces all members; one that stays the same keeps its targetId."""
    here = await items.enter(services, call, id)
    members: list[dict[str, Any]] = body.properties["members"]
    wrong = validate(id.name, body.properties)
    named = Named([], set())
    if len(wrong) < MOST_ERRORS and not any(error.code == "QuotaExceeded" for error in wrong):
        wrong += await references.check(services, call, account_of(id), _references(members))
        named = await _check_servers(services, call, account_of(id), members)
    refuse(wrong + named.errors)
    await _check_nested(services, call, id, members)
    await target_servers.allow(services, call, here, named.servers)
    command = PutTargetGroup(
        name=id.name,
        document={"members": [_document(member) for member in members]},
        condition=items.condition(call),
    )
    try:
        return await FAMILY.put(services, call, id, here, command)
    except InvalidRequest as refused:
        if refused.code != "InvalidTargetServer":
            raise
        raise Unavailable(  # every server was found above: only the account's copy is older
            "A server of the group is not in the directory of the job account yet. That takes seconds; "
            "the same request can be sent again.",
            code="ServerNotYetKnown",
            target=refused.target,
            retry_after=1,
        ) from refused


async def _check_servers(
    services: Services, call: Call, account: ResourceId, members: list[dict[str, Any]]
) -> Named:
    """Forbidden unless the caller may use every server that the members can lead to, now or later."""
    if any(member["type"] in READ_AT_RUN_TIME for member in members):
        everywhere = ResourceId(account.pairs[:1])
        await target_servers.demand(
            services, call, target_servers.USE_AS_TARGET, everywhere, account
        )
    return await target_servers.check_named(services, call, account, _servers(members))


async def _check_nested(
    services: Services, call: Call, id: ResourceId, members: list[dict[str, Any]]
) -> None:
    nested = [
        ResourceId.parse(member["targetGroup"]).name
        for member in members
        if "targetGroup" in member
    ]
    if nested:
        await target_servers.check_reached(services, call, id, "targetGroups", nested, MEMBERS)


async def resolve(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """What the group yields now; only the engine can tell, since it alone reaches the targets."""
    here = await items.enter(services, call, id, locks=False)
    request_id = items.command_of(call, id, here)
    question = Ask(request_id=request_id, kind="resolve", args={"targetGroup": id.name})
    await items.write(services, call, id, here, FAMILY.action("resolve/action"), question)
    answer = await engine_requests.answer(services, call, id, request_id, PATIENCE)
    if answer is not None:
        return _understood(answer)
    raise Unavailable(
        "The account's engine has not answered yet. POST …/doctor on the job account shows why; "
        "the same request can be sent again.",
        code="EngineNotAnswering",
        retry_after=5,
    )


def _understood(answer: dict[str, Any]) -> dict[str, Any]:
    """Errors that the customer has to fix: a server that was removed, a query that fails."""
    if wrong := answer.get("error"):
        raise Conflict(wrong["message"], code=wrong["code"])
    return answer


def _document(member: dict[str, Any]) -> dict[str, Any]:
    document = {name: value for name, value in member.items() if value != ""}
    document.setdefault("membershipType", "Include")
    for name in REFERENCES.keys() & document.keys():
        document[name] = references.document(document[name])
    return document


def _shown(member: dict[str, Any], here: Access) -> dict[str, Any]:
    present = {name: value for name, value in member.items() if value is not None}
    for name in REFERENCES.keys() & present.keys():
        present[name] = references.shown(present[name], REFERENCES[name], here)
    return present


def _references(members: list[dict[str, Any]]) -> Iterator[Reference]:
    for at, member in enumerate(members):
        for name, kind in REFERENCES.items():
            if member.get(name):
                yield Reference(f"{MEMBERS}[{at}].{name}", member[name], kind)


def _servers(members: list[dict[str, Any]]) -> Iterator[ServerName]:
    for at, member in enumerate(members):
        if member.get("serverName"):
            where = f"{MEMBERS}[{at}].serverName"
            yield ServerName(where, member["serverName"], member.get("subscriptionId"))
