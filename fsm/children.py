"""Children are deleted before their resource: each gets a delete signal, then the parent waits."""

from uuid import UUID

from fsm import operations, signals
from fsm.context import Context
from fsm.lifecycle_table import DELETING, Done, Outcome, Wait, shielded
from fsm.store import Q, machine_of, resource_of
from muster.core.ids import ResourceId


async def remove(ctx: Context) -> Outcome:
    """Children with a life of their own get a delete and its operation; the others are forgotten."""
    db = ctx.services.db
    for child in await db.fetch(Q.children, ctx.resource.uid):
        await _remove(ctx, child["uid"])
    left = await db.fetch(Q.children, ctx.resource.uid)
    if not left:
        return Done()
    names = ", ".join(row["name"] for row in left[:5])
    return Wait(ctx.services.settings.poll_busy, f"still below it ({len(left)}): {names}")


async def _remove(ctx: Context, uid: UUID) -> None:
    """Asks once: what is deleting already, or tries again by itself, is left alone."""
    async with ctx.services.db.transaction() as tx:
        row = await tx.fetchrow(Q.lock_resource, uid)
        if row is None:
            return
        child = resource_of(row)
        machine_row = await tx.fetchrow(Q.get_machine, uid)
        if machine_row is None:
            await tx.execute(Q.forget_extensions, uid)
            await tx.execute(Q.forget_resource, uid)
            return
        machine = machine_of(machine_row)
        lifecycle = ctx.services.lifecycles[machine.lifecycle]
        if child.provisioning_state == DELETING or shielded(lifecycle.row(machine.state)):
            return
        await operations.cancel_running(tx, uid)
        parent = ctx.machine.operation_id and await operations.get(tx, ctx.machine.operation_id)
        operation = await operations.begin(
            tx,
            resource_id=ResourceId.parse(child.id),
            resource_uid=uid,
            tenant_id=child.tenant_id,
            location=child.location or ctx.resource.location or "",
            verb="delete",
            caller=parent.caller if parent else "muster",
            correlation_id=(parent and parent.correlation_id) or str(ctx.command_id),
        )
        await signals.send(
            tx,
            ctx.services.lifecycles,
            uid=uid,
            name="delete",
            operation_id=operation.operation_id,
            payload={"cascade": True},
        )
