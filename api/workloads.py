"""What the Workload API can be asked: who may ask, and which function of the queue answers.

A workload speaks with its start token and only for itself; a launcher with a signed token, for its own
name and inside its group.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from fsm import addresses
from fsm.launch import claims, protocol, tokens
from fsm.launch.protocol import Kind, Reason
from fsm.launch.queue import Queue
from fsm.launch.tokens import Launcher, LauncherTokens
from fsm.launch.workload import BY_ITSELF, BY_LAUNCHER, NewWorkload, Workload, shown
from muster.core.clock import Clock
from muster.core.db import Database
from muster.core.errors import Forbidden, InvalidRequest, NotFound, Unauthenticated

MOST = 1000  # of one answer
OWN = Reason.REPORTED
CONNECTING = frozenset({Kind.ENGINE, Kind.HOST})
SAID_BY_LAUNCHERS = frozenset({OWN, Reason.START_FAILED, Reason.EXITED})


@dataclass(frozen=True)
class Reply:
    status: int
    body: object = None


DONE = Reply(204)


@dataclass(frozen=True)
class Caller:
    """One of both: a workload that proved to be itself, or a launcher."""

    workload: Workload | None = None
    launcher: Launcher | None = None

    @property
    def source(self) -> str:
        return BY_LAUNCHER if self.launcher else BY_ITSELF

    @property
    def as_launcher(self) -> Launcher:
        if self.launcher is None:
            raise Forbidden("Only a launcher may ask for this.")
        return self.launcher

    @property
    def as_engine(self) -> Workload:
        if self.workload is None or self.workload.kind is not Kind.ENGINE:
            raise Forbidden("Only an engine may ask for this.")
        return self.workload


@dataclass(frozen=True, kw_only=True)
class Services:
    db: Database
    queue: Queue
    tokens: LauncherTokens
    clock: Clock

    async def caller(self, authorization: str) -> Caller:
        form, _, token = authorization.partition(" ")
        if form.lower() != "bearer" or not token:
            raise Unauthenticated("A bearer token is needed.")
        id = tokens.workload_of(token)
        if id is None:
            return Caller(launcher=self.tokens.check(token, self.clock.now()))
        try:
            workload = await self.queue.get(self.db, id)
        except NotFound:
            raise Unauthenticated("The token's workload is not known.") from None
        if not tokens.fits(token, workload.token_digest):
            raise Unauthenticated("The token is not the workload's.")
        return Caller(workload=workload)

    async def subject(self, caller: Caller, id: UUID) -> Workload:
        """The workload that is spoken of, if this caller may: unknown comes before any refusal."""
        if caller.workload is not None:
            if caller.workload.id != id:
                raise Forbidden("A workload may report only on itself.")
            return caller.workload
        workload = await self.queue.get(self.db, id)
        if workload.launch_group != caller.as_launcher.group:
            raise NotFound(f"Workload {id} is not known.", code="WorkloadNotFound")
        return workload


async def create(services: Services, caller: Caller, body: protocol.Create) -> Reply:
    """An engine asks for a command of its own account, where it runs itself."""
    engine = caller.as_engine
    new = NewWorkload(
        id=body.workload_id,
        kind=Kind.COMMAND,
        launch_group=engine.launch_group,
        account_uid=engine.account_uid,
        mutex_key=f"{engine.account_uid}/{body.mutex_key}" if body.mutex_key else None,
        priority=body.priority,
        epoch=engine.epoch,
        spec=body.spec,
        labels=body.labels,
    )
    async with services.db.transaction() as tx:
        try:
            existing = await services.queue.get(tx, new.id)
        except NotFound:
            existing = None
        made = existing or await services.queue.enqueue(tx, new)
        if made.account_uid != engine.account_uid or made.kind is not Kind.COMMAND:
            raise Forbidden("This id belongs to something else.")
    return Reply(200) if existing else DONE


async def claim(services: Services, caller: Caller, body: protocol.Named) -> Reply:
    launcher = caller.as_launcher
    settings = services.queue.settings
    async with services.db.transaction() as tx:
        won = await claims.claim(
            tx, settings, body.workload_id, launcher=launcher.name, group=launcher.group
        )
    return Reply(200, protocol.Claimed(claimed=won is not None))


async def launched(services: Services, caller: Caller, body: protocol.Named) -> Reply:
    name = caller.as_launcher.name
    async with services.db.transaction() as tx:
        workload = await services.queue.launched(tx, body.workload_id)
        if workload.claimed_by != name:
            raise Forbidden("This workload is another launcher's.")
    return DONE


async def running(services: Services, _: Caller, body: protocol.Beat) -> Reply:
    async with services.db.transaction() as tx:
        await services.queue.running(tx, body.workload_id, body.report)
    return DONE


async def heartbeat(services: Services, _: Caller, body: protocol.Beat) -> Reply:
    await services.queue.heartbeat(services.db, body.workload_id, body.report)
    return DONE


async def read_addresses(services: Services, caller: Caller, _: None) -> Reply:
    """Those that are open and denied to the workload's account now."""
    workload = caller.workload
    if workload is None or workload.kind not in CONNECTING:
        raise Forbidden("Only an engine or a host may ask for this.")
    settings = services.queue.settings
    return Reply(200, await addresses.of_account(services.db, settings, workload.account_uid))


async def success(services: Services, caller: Caller, body: protocol.Success) -> Reply:
    async with services.db.transaction() as tx:
        await services.queue.success(tx, body.workload_id, body.result, source=caller.source)
    return DONE


async def failure(services: Services, caller: Caller, body: protocol.Failure) -> Reply:
    may_say = SAID_BY_LAUNCHERS if caller.launcher else {OWN}
    if body.reason not in may_say:
        raise InvalidRequest(f"A {caller.source} may not give the reason '{body.reason}'.")
    async with services.db.transaction() as tx:
        await services.queue.failure(
            tx, body.workload_id, reason=body.reason, source=caller.source, message=body.message
        )
    return DONE


async def cancel(services: Services, caller: Caller, body: protocol.Cancel) -> Reply:
    async with services.db.transaction() as tx:
        await services.queue.cancelled(
            tx, body.workload_id, reason=body.reason, source=caller.source, message=body.message
        )
    return DONE


async def gone(services: Services, caller: Caller, body: protocol.Gone) -> Reply:
    async with services.db.transaction() as tx:
        await services.queue.gone(tx, body.workload_id, caller.as_launcher.name, body.exit_code)
    return DONE


async def listing(services: Services, caller: Caller, body: protocol.Listing) -> Reply:
    workloads = await services.queue.listed(
        services.db,
        caller.as_launcher.group,
        states=body.state,
        claimed_by=body.claimed_by,
        limit=max(0, min(body.limit, MOST)),
    )
    return Reply(200, protocol.Page(workloads=tuple(shown(each) for each in workloads)))


async def poll(services: Services, caller: Caller, body: protocol.Poll) -> Reply:
    async with services.db.transaction() as tx:
        workloads = await claims.poll(
            tx,
            services.queue.settings,
            group=caller.as_launcher.group,
            priority=body.priority,
            quantity=max(0, min(body.quantity, MOST)),
        )
    return Reply(200, protocol.Page(workloads=tuple(shown(each) for each in workloads)))


async def depth(services: Services, caller: Caller, body: protocol.Depth) -> Reply:
    count = await claims.depth(services.db, caller.as_launcher.group, body.priority)
    return Reply(200, {"count": count})


async def stats(services: Services, caller: Caller, _: None) -> Reply:
    group = caller.as_launcher.group
    waiting = [each for each in await claims.stats(services.db) if each.launch_group == group]
    return Reply(200, {"stats": waiting})


async def clean(services: Services, caller: Caller, body: protocol.Clean) -> Reply:
    assert caller.as_launcher
    settings = services.queue.settings
    limit = max(0, min(body.limit, MOST))
    return Reply(200, {"count": await claims.clean(services.db, settings, limit)})


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    body: type[msgspec.Struct] | None
    act: Callable[[Services, Caller, Any], Awaitable[Reply]]


ROUTES = (
    Route("POST", "/create", protocol.Create, create),
    Route("PUT", "/claim", protocol.Named, claim),
    Route("PUT", "/launched", protocol.Named, launched),
    Route("PUT", "/running", protocol.Beat, running),
    Route("PUT", "/heartbeat", protocol.Beat, heartbeat),
    Route("GET", "/addresses", None, read_addresses),
    Route("PUT", "/success", protocol.Success, success),
    Route("PUT", "/failure", protocol.Failure, failure),
    Route("PUT", "/cancel", protocol.Cancel, cancel),
    Route("PUT", "/gone", protocol.Gone, gone),
    Route("POST", "/list", protocol.Listing, listing),
    Route("POST", "/queue/poll", protocol.Poll, poll),
    Route("POST", "/queue/depth", protocol.Depth, depth),
    Route("GET", "/queue/stats", None, stats),
    Route("POST", "/queue/clean", protocol.Clean, clean),
)
