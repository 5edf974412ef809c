"""The workloads of an account: requested through the workload queue, never started from here."""

from uuid import UUID, uuid5

import msgspec

from fsm import addresses
from fsm.context import Context, Services
from fsm.control_database import Control
from fsm.launch import claims
from fsm.launch.protocol import Kind, Priority, Reason, Spec, State
from fsm.launch.queue import Queue
from fsm.launch.workload import NewWorkload, Workload, seal_context
from fsm.store import Q
from muster.core.db import Connection, Database
from muster.core.egress import Addresses
from muster.core.errors import Conflict, PreconditionFailed, Unavailable
from nodeagent.protocol import Roles

SECRETS = ("engine_password", "private_key")
TRIES = 3  # engines that one visit to a state starts before it gives up
INCOMPATIBLE = "EngineIncompatible"


async def launch(ctx: Context, where: Control, *, at_least: int, queued: int | None = None) -> int:
    """The epoch of the engine that this visit to this state wants; a repeat wants the same one.

    `queued` is the epoch of one that was wanted before and will do. One that ended is replaced, a few
    times, unless its version does not fit. Hosts outlive the core: only those that are missing are
    wanted again.
    """
    queue, services = _queue(ctx), ctx.services
    reached = await addresses.of_account(services.db, services.settings, ctx.resource.uid)
    async with services.db.transaction() as tx:
        workloads = await queue.of_account(tx, ctx.resource.uid)
        engines = [workload for workload in workloads if workload.kind is Kind.ENGINE]
        tries = [uuid5(ctx.command_id, f"engine/{number}") for number in range(TRIES)]
        for engine in engines:
            ours = engine.id in tries or engine.epoch == queued
            if ours and not engine.state.over and engine.epoch is not None:
                return engine.epoch
            if ours and engine.misfit:
                raise incompatible(engine.misfit)
            if ours and engine.reason is Reason.NOT_CLAIMED:
                raise no_launcher(ctx)
        used = {engine.id for engine in engines}
        id = next((each for each in tries if each not in used), None)
        if id is None:
            last = next(engine for engine in engines if engine.id == tries[-1])
            why = f"{last.reason or last.state}: {last.message or 'no message'}"
            raise PreconditionFailed(f"The engine did not start: {why}", code="EngineStartFailed")
        epochs = [workload.epoch for workload in workloads if workload.epoch is not None]
        epoch: int = max([at_least, ctx.scratch.get("epoch", 0), *epochs]) + 1
        await queue.enqueue(
            tx, _wanted(ctx, where, reached, Kind.ENGINE, id, epoch, engine_key(ctx.resource.uid))
        )
        for number in range(services.settings.engine_hosts):
            key = host_key(ctx.resource.uid, number)
            if await queue.active(tx, key) is None:
                host = uuid5(id, key)
                await queue.enqueue(tx, _wanted(ctx, where, reached, Kind.HOST, host, epoch, key))
        await _still_ours(ctx, tx)
        return epoch


async def may_fit(ctx: Context) -> None:
    """An engine that did not fit is not started again before a launcher of another version is there."""
    last = next((each for each in await _known(ctx) if each.kind is Kind.ENGINE), None)
    if last is None or last.misfit is None:
        return
    db, settings = ctx.services.db, ctx.services.settings
    if not await claims.other_versions(db, settings, last.launch_group, last.version):
        raise incompatible(last.misfit)


def incompatible(message: str) -> PreconditionFailed:
    """Names both versions, as the engine found them, and what brings them together."""
    return PreconditionFailed(
        f"The engine and the schema of the control database do not fit: {message} If the engine is too "
        "old, upgrade Muster where the launchers run; if the schema is, a PATCH of the account upgrades it at "
        "once.",
        code=INCOMPATIBLE,
    )


def no_launcher(ctx: Context) -> PreconditionFailed:
    settings = ctx.services.settings
    minutes = settings.workload_claim_limit.total_seconds() / 60
    return PreconditionFailed(
        f"No launcher of the group '{settings.launcher_group}' ran for {minutes:g} minutes. "
        "Start one (`muster launcher`; `muster up` has one), then PATCH the account.",
        code="LauncherUnavailable",
    )


async def active(ctx: Context) -> dict[str | None, Workload]:
    """What has not ended, by its key."""
    return {each.mutex_key: each for each in await _known(ctx) if not each.state.over}


async def runs(ctx: Context, epoch: int) -> bool:
    engine = await _engine(ctx, epoch)
    return engine is not None and engine.state is State.RUNNING


async def starts(ctx: Context, epoch: int) -> bool:
    """Started, and without a heartbeat yet."""
    engine = await _engine(ctx, epoch)
    return engine is not None and engine.state in {State.PENDING, State.CLAIMED, State.LAUNCHED}


async def pending(ctx: Context, epoch: int) -> bool:
    """In the queue, and not taken by a launcher."""
    engine = await _engine(ctx, epoch)
    return engine is not None and engine.state is State.PENDING


async def fence(services: Services, account_uid: UUID) -> None:
    """Ends the account's engine on purpose; it is not replaced."""
    if services.queue is not None:
        async with services.db.transaction() as tx:
            await services.queue.cancel(tx, engine_key(account_uid), Reason.FENCED)


async def waits_for(ctx: Context, epoch: int) -> str:
    """The step that the engine's start has reached, as `doctor` shows it."""
    workload = await _engine(ctx, epoch)
    match workload.state if workload else None:
        case State.PENDING:
            return "a launcher with capacity for the engine"
        case State.CLAIMED:
            return "the launcher to start the engine"
        case State.LAUNCHED:
            return "the engine's first report"
        case _:
            return "the engine's first heartbeat in the control database"


async def stop(ctx: Context, reason: Reason) -> int:
    """Ends all workloads of the account; how many processes may still be there."""
    return await end_all(_queue(ctx), ctx.services.db, ctx.resource.uid, reason)


async def end_all(queue: Queue, db: Database, account_uid: UUID, reason: Reason) -> int:
    async with db.transaction() as tx:
        for workload in await queue.of_account(tx, account_uid):
            if not workload.state.over:
                await queue.cancel(tx, workload.id, reason)
        workloads = await queue.of_account(tx, account_uid)
    return sum(1 for each in workloads if each.claimed_by is not None and each.gone_at is None)


async def forget(ctx: Context) -> None:
    async with ctx.services.db.transaction() as tx:
        await _queue(ctx).forget(tx, ctx.resource.uid)


def engine_key(account_uid: UUID) -> str:
    """The mutex key: at most one engine of an account runs."""
    return f"{Kind.ENGINE}/{account_uid}"


def host_key(account_uid: UUID, number: int) -> str:
    return f"{Kind.HOST}/{account_uid}/{number}"


async def _still_ours(ctx: Context, tx: Connection) -> None:
    """A runner that slept while another one went on, perhaps to the end, wants nothing any more.

    Comes last: a caller that ends a workload also locks the workload before the machine.
    """
    machine = ctx.machine
    if not await tx.fetchrow(Q.hold, machine.uid, machine.version, machine.lease_owner):
        raise Conflict("Another runner took over.", code="LeaseLost")


def _wanted(
    ctx: Context,
    where: Control,
    reached: Addresses,
    kind: Kind,
    id: UUID,
    epoch: int,
    key: str,
) -> NewWorkload:
    services, uid = ctx.services, ctx.resource.uid
    plain = {
        name: services.keyring.open(ctx.resource.sealed[name], f"{uid}/{name}").reveal()
        for name in SECRETS
    }
    if where.endpoint.client_key:
        plain["client_key"] = where.endpoint.client_key
    settings = services.settings
    if settings.vault_token is not None:
        plain["vault_token"] = settings.vault_token.reveal()
    values = {
        "endpoint": msgspec.to_builtins(msgspec.structs.replace(where.endpoint, client_key=None)),
        "database": where.database.name,
        "user": Roles.of(uid).engine,
        "capacity": (ctx.resource.sku or {}).get("capacity", 100),
        "hosts": settings.engine_hosts,
        "hostPatience": settings.host_patience.total_seconds(),
        "partPatience": settings.engine_part_patience.total_seconds(),
        "batchReads": settings.batch_reads,
        "outputSpoolDir": settings.output_spool_dir and str(settings.output_spool_dir),
        "outputSpoolSize": settings.output_spool_size,
        "targetAllow": settings.target_allow,
        "targetDeny": settings.target_deny,
        "targetPorts": settings.target_ports,
        "providerDatabases": settings.provider_databases,
        "addresses": msgspec.to_builtins(reached),
        "targetCa": services.connector.authority,
        "credentialReferences": settings.credential_references,
        "vaultAddress": settings.vault_address,
        "vaultNamespace": settings.vault_namespace,
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
        spec=Spec(settings=values),
        labels={"account": ctx.resource.name},
        sealed={
            name: services.keyring.seal(text, seal_context(id, name))
            for name, text in plain.items()
        },
    )


async def _known(ctx: Context) -> list[Workload]:
    return await _queue(ctx).of_account(ctx.services.db, ctx.resource.uid)


async def _engine(ctx: Context, epoch: int) -> Workload | None:
    for workload in await _known(ctx):
        if workload.kind is Kind.ENGINE and workload.epoch == epoch:
            return workload
    return None


def _queue(ctx: Context) -> Queue:
    if ctx.services.queue is None:
        raise Unavailable("This runner serves no job accounts.", code="LauncherUnavailable")
    return ctx.services.queue
