"""The runtime of an account: wanted through the workload queue, never started from here."""

from uuid import UUID, uuid5

import msgspec

from fsm.context import Context
from fsm.control import Control
from fsm.launch.protocol import Kind, Priority, Reason, Spec, State
from fsm.launch.queue import Queue
from fsm.launch.workload import NewWorkload, Workload, seal_context
from muster.core.errors import Unavailable
from nodeagent.protocol import Roles

SECRETS = ("engine_password", "private_key")


async def launch(ctx: Context, where: Control, *, at_least: int) -> int:
    """The epoch of the engine that this visit to this state wants; a repeat wants the same one.

    Hosts outlive the core: only those that are missing are wanted anew.
    """
    queue = _queue(ctx)
    id = uuid5(ctx.command_id, "engine")
    async with ctx.services.db.transaction() as tx:
        known = await queue.of_account(tx, ctx.resource.uid)
        for workload in known:
            if workload.id == id and workload.epoch is not None:
                return workload.epoch
        given = [workload.epoch for workload in known if workload.epoch is not None]
        epoch: int = max([at_least, ctx.scratch.get("epoch", 0), *given]) + 1
        await queue.enqueue(
            tx, _wanted(ctx, where, Kind.ENGINE, id, epoch, mutex(ctx, Kind.ENGINE))
        )
        for number in range(ctx.services.settings.engine_hosts):
            key = f"{mutex(ctx, Kind.HOST)}/{number}"
            if await queue.active(tx, key) is None:
                host = uuid5(ctx.command_id, key)
                await queue.enqueue(tx, _wanted(ctx, where, Kind.HOST, host, epoch, key))
        return epoch


async def failure(ctx: Context, epoch: int) -> str | None:
    """Why the engine of this epoch ended, or None while it may still come."""
    workload = await _engine(ctx, epoch)
    if workload is None or workload.state is not State.FAILURE:
        return None
    return f"{workload.reason}: {workload.message or 'no message'}"


async def waits_for(ctx: Context, epoch: int) -> str:
    """The step that the engine's start has reached, for whoever asks why it takes so long."""
    workload = await _engine(ctx, epoch)
    match workload.state if workload else None:
        case State.PENDING:
            return "a launcher with room for the engine"
        case State.CLAIMED:
            return "the launcher to start the engine"
        case State.LAUNCHED:
            return "the engine's first word"
        case _:
            return "the engine's first heartbeat in the control database"


async def stop(ctx: Context, reason: Reason) -> int:
    """Ends all workloads of the account; how many processes may still be there."""
    queue = _queue(ctx)
    async with ctx.services.db.transaction() as tx:
        known = await queue.of_account(tx, ctx.resource.uid)
        for workload in known:
            if not workload.state.over:
                await queue.cancel(tx, workload.id, reason)
        known = await queue.of_account(tx, ctx.resource.uid)
    return sum(1 for each in known if each.claimed_by is not None and each.gone_at is None)


async def forget(ctx: Context) -> None:
    async with ctx.services.db.transaction() as tx:
        await _queue(ctx).forget(tx, ctx.resource.uid)


def mutex(ctx: Context, kind: Kind) -> str:
    return f"{kind}/{ctx.resource.uid}"


def _wanted(
    ctx: Context, where: Control, kind: Kind, id: UUID, epoch: int, key: str
) -> NewWorkload:
    services, uid = ctx.services, ctx.resource.uid
    plain = {
        name: services.keyring.open(ctx.resource.sealed[name], f"{uid}/{name}").reveal()
        for name in SECRETS
    }
    if where.endpoint.client_key:
        plain["client_key"] = where.endpoint.client_key
    settings = services.settings
    given = {
        "endpoint": msgspec.to_builtins(msgspec.structs.replace(where.endpoint, client_key=None)),
        "database": where.database.name,
        "user": Roles.of(uid).engine,
        "capacity": (ctx.resource.sku or {}).get("capacity", 100),
        "hosts": settings.engine_hosts,
        "hostPatience": settings.host_patience.total_seconds(),
        "partPatience": settings.engine_part_patience.total_seconds(),
        "targetAllow": settings.target_allow,
        "targetDeny": settings.target_deny,
        "targetPorts": settings.target_ports,
        "connectLimit": settings.connect_limit.total_seconds(),
        "logLevel": settings.log_level,
    }
    return NewWorkload(
        kind=kind,
        id=id,
        launch_group=settings.launcher_group,
        account_uid=uid,
        mutex_key=key,
        priority=Priority.DEFAULT,
        epoch=epoch,
        spec=Spec(settings=given),
        labels={"account": ctx.resource.name},
        sealed={
            name: services.keyring.seal(text, seal_context(id, name))
            for name, text in plain.items()
        },
    )


async def _engine(ctx: Context, epoch: int) -> Workload | None:
    for workload in await _queue(ctx).of_account(ctx.services.db, ctx.resource.uid):
        if workload.kind is Kind.ENGINE and workload.epoch == epoch:
            return workload
    return None


def _queue(ctx: Context) -> Queue:
    if ctx.services.queue is None:
        raise Unavailable("This runner serves no job accounts.", code="LauncherUnavailable")
    return ctx.services.queue
