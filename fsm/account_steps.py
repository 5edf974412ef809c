"""The work in each state of a job account; every step may be repeated."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from fsm import account_runtime, control_database
from fsm.conditions import Condition, condition, renewed
from fsm.context import Context
from fsm.control_database import Control
from fsm.launch.protocol import Reason
from fsm.lifecycle_table import Done, Outcome, Wait
from fsm.transitions import SIGNAL
from muster.core import telemetry
from muster.core.errors import (
    Conflict,
    Fault,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Unavailable,
)
from nodeagent.protocol import (
    Drain,
    EpochRead,
    InstallSchema,
    ReadEpoch,
    RemoveSchema,
    SchemaInstalled,
    SchemaUpgraded,
    UpgradeSchema,
)

log = telemetry.get(__name__)

INSTALLED = "installed"  # the schema is in the control database
EPOCH = "epoch"  # the highest that we gave to an engine
SEEN = "seenEpoch"  # the highest that was installed so far: a lower one means a restore
IDENTITY = "identity"  # of the control database as we installed or acknowledged it
OID = "databaseOid"
FROM_BACKUP = "restoredFromBackupOf"  # the time of the backup that the installation comes from
ACKNOWLEDGED = "acknowledged"  # conditions that an administrator has acknowledged
RESTORED, CLONED = "ControlDatabaseRestored", "ControlDatabaseCloned"
STRANGE = {RESTORED, CLONED}  # until an administrator acknowledges it
IDENTITY_UNUSED = "IdentityHasNoEffect"
GONE = {"TargetDatabaseNotFound", "ControlSchemaMissing", "ControlDatabaseNotFound"}


async def reserve(ctx: Context) -> Outcome:
    """Whether a node agent and a launcher can serve the account; nothing is created yet."""
    await control_database.of(ctx)
    return Done()


async def prepare_database(ctx: Context) -> Outcome:
    """Roles, schema, key and identity, then what the account may reach."""
    where = await control_database.of(ctx)
    try:
        made = await _install(ctx, where)
    except Unavailable as refused:
        if refused.code != "ControlDatabaseReadOnly":
            raise
        raise InvalidRequest(
            "The database is read-only: its server is a standby, or its transactions are read only.",
            code="JobAgentDatabaseSecondary",
        ) from refused
    await control_database.sync_directory(where, made.identity)
    return Done(
        scratch={
            INSTALLED: True,
            IDENTITY: str(made.identity),
            OID: made.database_oid,
            EPOCH: max(made.epoch, ctx.scratch.get(EPOCH, 0)),
            SEEN: made.epoch,
        }
    )


async def queue_instance(ctx: Context) -> Outcome:
    where = await control_database.of(ctx)
    read = await where.operate(ReadEpoch())
    epoch = await account_runtime.launch(ctx, where, at_least=read.epoch)
    return Done(scratch={EPOCH: epoch})


async def see_instance(ctx: Context) -> Outcome:
    """Ready is what was seen: a heartbeat under our epoch in the control database."""
    if await account_runtime.starts(ctx, ctx.scratch[EPOCH]):  # no heartbeat can be there yet
        return await _wait(ctx, ctx.scratch[EPOCH])
    where = await control_database.of(ctx)
    read = await where.operate(ReadEpoch())
    epoch = await account_runtime.launch(ctx, where, at_least=read.epoch, queued=ctx.scratch[EPOCH])
    return await _seen(ctx, read, epoch)


async def apply_changes(ctx: Context) -> Outcome:
    """A new size is a new core under the next epoch; its hosts are adopted, what runs goes on."""
    where = await control_database.of(ctx)
    read = await where.operate(ReadEpoch())
    await _same_or_fenced(ctx, read)
    await where.administer(UpgradeSchema(revoke_public=await where.is_ours()))
    epoch: int = read.epoch
    before = ctx.payload.get("previous", {}).get("sku")
    if before != ctx.resource.sku or not await account_runtime.runs(ctx, epoch):
        epoch = await account_runtime.launch(ctx, where, at_least=read.epoch)
    outcome = await _seen(ctx, read, epoch)
    if isinstance(outcome, Done):
        await control_database.sync_directory(where, read.identity)
    return outcome


async def recover(ctx: Context) -> Outcome:
    """The next epoch, if the control database is the one that we know, or was acknowledged."""
    where = await control_database.of(ctx)
    if ctx.payload.get(ACKNOWLEDGED):
        return await _accept(ctx, where)
    read = await where.operate(ReadEpoch())
    await _same_or_fenced(ctx, read)
    # The schema first, then the engine: never while one runs.
    running = account_runtime.engine_key(ctx.resource.uid) in await account_runtime.active(ctx)
    if not running and not await _upgraded(ctx, where, read):
        await account_runtime.may_fit(ctx)
    epoch = await account_runtime.launch(ctx, where, at_least=read.epoch)
    outcome = await _seen(ctx, read, epoch)
    if isinstance(outcome, Done):
        await control_database.sync_directory(where, read.identity)
    return outcome


async def drain(ctx: Context) -> Outcome:
    """Nothing new starts; at once where there is no database, or never was a schema."""
    try:
        where = await control_database.of(ctx)
        await where.operate(Drain())
        read = await where.operate(ReadEpoch())
    except (NotFound, Conflict) as absent:
        if absent.code in GONE or INSTALLED not in ctx.scratch:
            return Done()
        raise
    except Unavailable:
        if INSTALLED not in ctx.scratch:
            return Done()
        raise
    if not read.drained:
        running = sum(host.running for host in read.hosts)
        return Wait(ctx.services.settings.poll_busy, f"{running} tasks still run")
    return Done()


async def stop_instance(ctx: Context) -> Outcome:
    left = await account_runtime.stop(ctx, Reason.ACCOUNT_DELETED)
    if left:
        return Wait(ctx.services.settings.poll_busy, f"{left} processes have not ended yet")
    return Done()


async def release(ctx: Context) -> Outcome:
    """Drops the roles that we made; the schema goes only when asked. Secrets go with the row."""
    try:
        where = await control_database.of(ctx)
        await where.administer(RemoveSchema(drop_schema=bool(ctx.payload.get("dropSchema"))))
    except (NotFound, Conflict) as absent:
        if absent.code not in GONE:
            raise
    except PreconditionFailed as never:
        if never.code != control_database.NO_ADMINISTRATOR or INSTALLED in ctx.scratch:
            raise
    await account_runtime.forget(ctx)
    return Done()


def same_database(ctx: Context, read: EpochRead) -> None:
    """A restored or cloned control database gets no engine until an administrator acknowledges it."""
    if str(read.identity) == ctx.scratch[IDENTITY]:
        if read.epoch < ctx.scratch.get(SEEN, 0):
            raise PreconditionFailed(
                "The control database was restored from an older state. "
                "Look at what ran since then, then POST …/acknowledge.",
                code=RESTORED,
            )
        if read.database_oid == ctx.scratch[OID]:
            if made_at := ctx.scratch.get(FROM_BACKUP):
                raise PreconditionFailed(
                    f"Muster was restored from a backup of {made_at}. "
                    "Look at what ran since then, then POST …/acknowledge.",
                    code=RESTORED,
                )
            return
    raise PreconditionFailed(
        "The control database is not the one that the account was linked to. "
        "If that is meant, POST …/acknowledge.",
        code=CLONED,
    )


async def _same_or_fenced(ctx: Context, read: EpochRead) -> None:
    """In a copy nothing stops an engine that is still there, so we do."""
    try:
        same_database(ctx, read)
    except PreconditionFailed:
        await account_runtime.fence(ctx.services, ctx.resource.uid)
        raise


async def _upgraded(ctx: Context, where: Control, read: EpochRead) -> bool:
    """Migrations and changed functions of this version of Muster, as after its upgrade; whether the schema was older.

    An account whose schema can't be upgraded keeps the one that it has: its engine knows whether it fits.
    """
    try:
        made: SchemaUpgraded = await where.administer(
            UpgradeSchema(revoke_public=await where.is_ours())
        )
    except Fault as refused:
        if refused.code != control_database.NO_ADMINISTRATOR:
            log.warning("can't upgrade the schema", account=ctx.resource.name, why=refused.message)
        return False
    return made.schema_version > read.schema_version


async def _accept(ctx: Context, where: Control) -> Wait:
    """What was acknowledged is the control database from here on, as it is found now; once."""
    seen = set(ctx.payload[ACKNOWLEDGED])
    try:
        read: EpochRead = await where.operate(ReadEpoch())
    except NotFound as missing:
        if missing.code != "ControlSchemaMissing" or not seen & GONE:
            raise
        await _install(ctx, where)  # the restored database may be empty
        read = await where.operate(ReadEpoch())
    try:
        await _same_or_fenced(ctx, read)
    except PreconditionFailed as strange:
        just_installed = read.epoch == 0 and seen & GONE
        if strange.code not in seen and not just_installed:
            raise
    scratch = {
        IDENTITY: str(read.identity),
        OID: read.database_oid,
        SEEN: read.epoch,
        FROM_BACKUP: None,
    }
    return Wait(
        timedelta(0), "an engine for what was acknowledged", scratch={**scratch, SIGNAL: {}}
    )


async def _install(ctx: Context, where: Control) -> SchemaInstalled:
    made: SchemaInstalled = await where.administer(
        InstallSchema(
            identity=UUID(ctx.scratch[IDENTITY]),
            public_key=ctx.scratch["publicKey"],
            agent_password=ctx.resource.sealed["agent_password"],
            engine_password=ctx.resource.sealed["engine_password"],
            revoke_public=await where.is_ours(),
        )
    )
    return made


async def _seen(ctx: Context, read: EpochRead, epoch: int) -> Outcome:
    if read.epoch != epoch or read.heartbeat_at is None:
        return await _wait(ctx, epoch)
    scratch = {IDENTITY: str(read.identity), OID: read.database_oid}
    return Done(
        observed=_shown(read) | {"conditions": _conditions(ctx)},
        scratch={**scratch, EPOCH: epoch, SEEN: epoch},
    )


def _conditions(ctx: Context) -> list[Condition] | None:
    """Of an account in order: what it was given and does not use."""
    if (ctx.resource.identity or {}).get("type") in {None, "None"}:
        return None
    message = "Jobs log in with credentials; the identity of the account is not used."
    new = condition(IDENTITY_UNUSED, message, ctx.services.clock.now())
    return renewed(ctx.resource.observed.get("conditions"), new)


async def _wait(ctx: Context, epoch: int) -> Wait:
    """Waiting for a launcher has the limit of the workload queue: none while a launcher lives."""
    pending = await account_runtime.pending(ctx, epoch)
    why = await account_runtime.waits_for(ctx, epoch)
    return Wait(ctx.services.settings.poll_busy, why, restarts_deadline=pending)


def _shown(read: EpochRead) -> dict[str, Any]:
    return {
        "instance": {
            "generation": read.generation,
            "epoch": read.epoch,
            "host": read.host_name,
            "startedAt": _time(read.started_at),
            "lastHeartbeat": _time(read.heartbeat_at),
            "version": read.version,
            "hosts": [
                {
                    "id": str(host.host_id),
                    "host": host.host_name,
                    "slots": host.slots,
                    "state": host.state,
                }
                for host in read.hosts
            ],
        }
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None
