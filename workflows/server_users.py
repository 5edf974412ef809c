"""Which job accounts use servers: asked before a server or a resource group is deleted.

Jobs reach servers of their account's subscription only, so these accounts are asked, and no others.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.core.errors import Conflict, Fault, FieldError, InvalidRequest
from muster.core.ids import ResourceId
from nodeagent.items import ReadServerUsers, ServerUsers
from workflows import access, authorization
from workflows.access import Q
from workflows.model.resource import DATABASE, FORCED_TYPES, Call
from workflows.services import Services

FORCE = "force"
TOGETHER = 8  # accounts asked at the same time
MOST_NAMED = 5  # users in the message; `details` has all that were found
NO_DATABASE = {access.NOT_READY, "ControlDatabaseNotFound", "TargetDatabaseNotFound"}


@dataclass(frozen=True)
class Answers:
    users: dict[ResourceId, ServerUsers]  # by account
    silent: dict[ResourceId, Fault]  # accounts that could not be asked


async def refuse_used(services: Services, call: Call, server: ResourceId) -> None:
    """Conflict while groups or steps name the server, unless forced, or while an execution runs there."""
    forced = call.flag(FORCE)
    answers = await ask(services, call, [server.text], outside=server)
    if not drops_in_use(call):
        await refuse_running(services, call, answers.users, f"server '{server.name}'")
    if forced:
        return
    await refuse_named(services, call, server, answers.users, "add ?force=true")
    if answers.silent:
        details = [
            FieldError(id.text, why.message, "ServerUsersUnknown")
            for id, why in answers.silent.items()
        ]
        readable = await authorization.readable(services, call, details)
        who = f"Job account '{_account(readable[0])}'" if readable else "A job account"
        why = f": {readable[0].message}" if readable else "."
        raise Conflict(
            f"{who} can't be asked whether it uses server '{server.name}'{why} "
            "Send the request again later, or add ?force=true.",
            code="ServerUsersUnknown",
            details=readable,
        )


async def refuse_named(
    services: Services,
    call: Call,
    server: ResourceId,
    users: Mapping[ResourceId, ServerUsers],
    force: str,
) -> None:
    """Conflict while target groups or steps name the server."""
    details = [
        *(_detail(account.child(("targetGroups", name)), "A target group that names the server.")
          for account, references in users.items() for name in references.groups),
        *(_detail(account.child(("jobs", each.job), ("steps", each.step)), "Its output goes there.")
          for account, references in users.items() for each in references.steps),
    ]  # fmt: skip
    if details:
        readable = await authorization.readable(services, call, details)
        raise Conflict(
            f"Server '{server.name}' is used by {_named(readable, len(details))}. Remove it there "
            f"first, or {force}: then they name a server that is not known.",
            code="ServerInUse",
            details=readable,
        )


async def refuse_running(
    services: Services, call: Call, users: Mapping[ResourceId, ServerUsers], what: str
) -> None:
    details = [
        FieldError(
            account.child(("jobs", each.job), ("executions", str(each.execution))).text,
            "An execution with targets there that have not ended.",
            "ExecutionRunning",
        )
        for account, references in users.items()
        for each in references.running
    ]
    if details:
        readable = await authorization.readable(services, call, details)
        raise Conflict(
            f"An execution still has targets on {what}: {_named(readable, len(details))}. Wait for "
            "its end or cancel it first.",
            code="ExecutionRunning",
            details=readable,
        )


async def ask(
    services: Services, call: Call, servers: Sequence[str], *, outside: ResourceId
) -> Answers:
    """Accounts below `outside` are not asked: each of them refuses the delete by itself."""
    subscription = (outside.subscription or "").lower()
    rows = await services.db.fetch(
        Q.accounts_elsewhere, subscription, call.principal.tenant_id, outside.key
    )
    answers, room = Answers({}, {}), asyncio.Semaphore(TOGETHER)
    command = ReadServerUsers(server_ids=tuple(servers))

    async def one(account: ResourceId) -> None:
        async with room:
            try:
                answers.users[account] = await access.look(services, call, account, command)
            except Fault as fault:
                if fault.code not in NO_DATABASE:
                    answers.silent[account] = fault

    if servers:
        async with asyncio.TaskGroup() as group:
            for row in rows:
                group.create_task(one(ResourceId.parse(row["id"])))
    return answers


def drops_in_use(call: Call) -> bool:
    """Whether the caller asks to delete databases even while they are in use."""
    text = call.query.get(FORCED_TYPES)
    if text is None:
        return False
    if DATABASE.lower() not in [each.strip().lower() for each in text.split(",")]:
        raise InvalidRequest(
            f"{FORCED_TYPES}: expected {DATABASE}.",
            code="InvalidParameterValue",
            target=FORCED_TYPES,
        )
    return True


def _detail(user: ResourceId, message: str) -> FieldError:
    return FieldError(user.text, message, "ServerInUse")


def _account(detail: FieldError) -> str:
    return access.account_of(ResourceId.parse(detail.target or "")).name


def _named(readable: Sequence[FieldError], count: int) -> str:
    """Names what the caller may read and counts the rest."""
    names = [_short(ResourceId.parse(each.target or "")) for each in readable][:MOST_NAMED]
    shown, rest = ", ".join(names), len(readable) - len(names)
    if rest:
        shown += f" and {rest} more"
    hidden = count - len(readable)
    return " and ".join([shown] * bool(shown) + [f"{hidden} that you may not read"] * bool(hidden))


def _short(user: ResourceId) -> str:
    """Such as `job 'nightly', step 'one' of job account 'jobs'`."""
    nouns = {
        "targetGroups": "target group",
        "jobs": "job",
        "steps": "step",
        "executions": "execution",
    }
    inside = ", ".join(f"{nouns[kind]} '{name}'" for kind, name in user.pairs if kind in nouns)
    return f"{inside} of job account '{access.account_of(user).name}'"
