"""The use cases that all types below an account share. Nothing of them is in the metadata database.

A read asks the node agent. A write is begun in the metadata database, takes effect in the control
database together with its journal row, and is settled in the metadata database: a repeat after a
crash anywhere between gets the first answer.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID, uuid5

import msgspec

from fsm import commands
from muster.core import telemetry
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from muster.core.failpoints import reach
from muster.core.ids import ResourceId
from nodeagent import items
from nodeagent.items import DeleteItem, GetItem, ListItems, PatchItem
from nodeagent.protocol import Door
from workflows import access, admission, authorization
from workflows.access import JUDGEMENTS, account_of, first_below, path_of
from workflows.accesscache import Access
from workflows.model.account import ACCOUNT
from workflows.model.item import Item, WrittenItem
from workflows.model.resource import Ancestor, Call, Deleted, Page
from workflows.services import Services
from workflows.store import audit

log = telemetry.get(__name__)

UUIDS = {"executions", "targets", "plans"}  # types whose names are uuids
IN_USE = "ElasticJobsOperationFailed"  # with the names of what uses it
NUMBERS = {"versions", "attempts"}


@dataclass(frozen=True)
class Family:
    """A type below an account: its kind in the control database and how its documents are shown."""

    kind: items.Kind
    shown: Callable[[dict[str, Any], Access], dict[str, Any]] = lambda properties, _: properties

    @property
    def arm_type(self) -> str:
        return f"{ACCOUNT}/{self.kind}"

    def action(self, verb: str) -> str:
        return f"{self.arm_type}/{verb}"

    def item(self, stored: items.Item, here: Access) -> Item:
        return Item(
            id=here.id.child(*zip(self.kind.split("/"), stored.path, strict=True)).text,
            type=self.arm_type,
            name=stored.name,
            properties=self.shown(stored.properties, here),
            row_version=stored.row_version,
            created_by=stored.created_by,
            created_at=stored.created_at,
            modified_by=stored.modified_by,
            modified_at=stored.modified_at,
        )

    async def get(self, services: Services, call: Call, id: ResourceId) -> Item:
        item = await self.raw(services, call, id)
        return self.item(item, await access.of(services, call, id))

    async def raw(self, services: Services, call: Call, id: ResourceId) -> items.Item:
        """As the control database has it."""
        path = path_of(id)
        await access.of(services, call, id)  # a missing account is reported first
        possible(self.kind, path, id)
        item: items.Item = await access.look(services, call, id, GetItem(kind=self.kind, path=path))
        return item

    async def list_page(
        self, services: Services, call: Call, scope: ResourceId, after: str | None, top: int
    ) -> Page:
        return await self.page(services, call, scope, after, top)

    async def page(
        self,
        services: Services,
        call: Call,
        scope: ResourceId,
        after: str | None,
        top: int,
        *,
        kind: items.Kind | None = None,
        filters: dict[str, Any] | None = None,
    ) -> Page:
        """`kind` names the list where it is not that of the items."""
        path = path_of(scope)
        here = await access.of(services, call, scope)
        possible(kind or self.kind, path, scope)
        wanted = dict(filters or {})
        seen = await authorization.visible(services, call, self.action("read"), scope)
        if seen is not None:
            names = authorization.children(seen, scope, self.kind.split("/")[len(path)])
            if not names:
                return Page(items=[])
            wanted["only"] = sorted(names)
        command = ListItems(
            kind=kind or self.kind,
            path=path,
            after=msgspec.json.decode(after) if after else None,
            top=top,
            filters=wanted,
        )
        page = await access.look(services, call, scope, command)
        more = None if page.next is None else msgspec.json.encode(page.next).decode()
        listed = [self._listed(self.item(each, here), seen) for each in page.items]
        return Page(items=[each for each in listed if each is not None], next=more)

    @staticmethod
    def _listed(item: Item, seen: list[str] | None) -> Item | Ancestor | None:
        """None: the control database knows no filter by name yet, or this list has none."""
        if authorization.sees(seen, item.id.lower()):
            return item
        if any(key.startswith(item.id.lower() + "/") for key in seen or ()):
            return Ancestor(id=item.id, name=item.name, type=item.type)
        return None

    async def put(
        self, services: Services, call: Call, id: ResourceId, here: Access, command: msgspec.Struct
    ) -> WrittenItem:
        written = await write(services, call, id, here, self.action("write"), command)
        return WrittenItem(item=self.item(written.item, here), created=written.created)

    async def patch(
        self, services: Services, call: Call, id: ResourceId, here: Access, patch: dict[str, Any]
    ) -> WrittenItem:
        """`patch` is one of the control database's document, so that a repeat is the same command."""
        assert self.kind in {"jobs", "jobs/steps"}
        command = PatchItem(
            kind=cast(Any, self.kind), path=path_of(id), patch=patch, condition=condition(call)
        )
        return await self.put(services, call, id, here, command)

    async def delete(
        self, services: Services, call: Call, id: ResourceId, options: dict[str, Any] | None = None
    ) -> Deleted:
        here = await enter(services, call, id, delete=True)
        command = DeleteItem(
            kind=self.kind, path=path_of(id), condition=condition(call), options=options or {}
        )
        try:
            gone = await write(services, call, id, here, self.action("delete"), command)
        except InvalidRequest as refused:
            named = refused.code == IN_USE and self.kind in {"credentials", "targetGroups"}
            if not named or await _reads_all(services, call, id):
                raise
            message = f"'{id.name}' is used by jobs or target groups that you may not read."
            raise InvalidRequest(message, code=IN_USE, target=refused.target) from refused
        return Deleted(existed=gone.deleted)


async def _reads_all(services: Services, call: Call, id: ResourceId) -> bool:
    """Whether the caller may read everything in the account, so that users of an item may be named."""
    account = account_of(id)
    return await authorization.allows(services, call.principal, f"{ACCOUNT}/read", account)


async def enter(
    services: Services, call: Call, id: ResourceId, *, delete: bool = False, locks: bool = True
) -> Access:
    """The account, once everything above it allows a write; `locks=False` passes them."""
    async with services.db.connection() as connection:
        world = await admission.parents(connection, first_below(id), call.principal.tenant_id)
    if locks:
        if not delete:
            admission.writable(world, id)
        admission.unlocked(world, id, delete=delete)
    here = await access.of(services, call, id)
    account = world.parent.resource if world.parent else None
    if account and (account.uid != here.uid or account.provisioning_state == "Deleting"):
        here = await access.of(services, call, id, refresh=True)
    return here


async def write(
    services: Services,
    call: Call,
    id: ResourceId,
    here: Access,
    action: str,
    command: msgspec.Struct,
) -> Any:
    """The command's result, the first one again where the request is a repeat."""
    command_id = command_of(call, id, here)
    key = call.idempotency_key
    async with services.db.transaction() as tx:
        if await commands.begin(
            tx,
            command_id=command_id,
            account_uid=here.uid,
            request_key=f"{who(call)} {call.method} {id.key} {key}" if key else None,
            body_digest=call.body_digest,
        ):
            await audit.started(tx, call, action, id, command_id)
    await reach("command.begun", action)
    try:
        answer = await services.agent.run(
            here.uid, command_id, command, here.login, caller=access.caller(call), door=Door.REST
        )
    except JUDGEMENTS as refused:
        services.accounts.forget(call.principal.tenant_id, account_of(id).key)
        await commands.settle(
            services.db, command_id, succeeded=False, detail={"code": refused.code}
        )
        access.judge(refused)
    await reach("command.done", action)
    try:
        await commands.settle(services.db, command_id, succeeded=True)
    except Unavailable as away:
        log.warning("command is not settled yet", command=command_id, why=away.context)
    await reach("command.settled", action)
    return answer


def command_of(call: Call, id: ResourceId, here: Access) -> UUID:
    """The same for a repeat of the request, another for any other; without a key none is a repeat."""
    digest = hashlib.sha256()
    for part in (who(call), call.method, id.key, call.idempotency_key or call.request_id):
        digest.update(part.encode() + b"\n")
    digest.update(call.body_digest)
    return uuid5(here.uid, digest.hexdigest())


def condition(call: Call) -> dict[str, Any]:
    """If-Match and If-None-Match as the functions take them: an ETag is the row's version."""
    wanted: dict[str, Any] = {}
    if call.if_match is not None:
        every = call.if_match.strip() == "*"
        wanted["ifMatch"] = "*" if every else [_version(tag) for tag in call.if_match.split(",")]
    if call.if_none_match is not None and call.if_none_match.strip() == "*":
        wanted["ifNoneMatch"] = "*"
    return wanted


def possible(kind: str, path: tuple[str, ...], id: ResourceId) -> None:
    """What can't be a uuid or a number names nothing."""
    for type, name in zip(kind.split("/"), path, strict=False):
        number = name.isascii() and name.isdigit() and len(name) < 10
        if (type in UUIDS and not is_uuid(name)) or (type in NUMBERS and not number):
            raise NotFound(f"The resource '{id.type}/{name[:100]}' was not found.")


def is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def present(value: Any) -> Any:
    """Without what is not there."""
    if isinstance(value, dict):
        return {name: present(each) for name, each in value.items() if each is not None}
    return value


def _version(tag: str) -> str:
    return tag.strip().removeprefix("W/").strip('"')


def who(call: Call) -> str:
    return f"{call.principal.tenant_id}/{call.principal.id}"
