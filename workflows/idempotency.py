"""A repeated request gets the first answer; the same key with another body is refused."""

from typing import TypeVar

import msgspec

from muster.core.db import Connection
from muster.core.errors import Conflict
from muster.core.ids import ResourceId
from workflows.model.resource import Call
from workflows.store.resources import Q

T = TypeVar("T", bound=msgspec.Struct)


async def earlier(tx: Connection, call: Call, id: ResourceId, kind: type[T]) -> T | None:
    """What the first request under this key was answered; requests under one key wait for each other."""
    if call.idempotency_key is None:
        return None
    caller, key = _keys(call, id)
    await tx.execute(Q.lock_answer, caller, key)
    row = await tx.fetchrow(Q.get_answer, caller, key)
    if row is None:
        return None
    if bytes(row["body_digest"]) != call.body_digest:
        raise Conflict(
            f"The idempotency key '{call.idempotency_key}' was used with another body.",
            code="IdempotencyKeyMismatch",
        )
    return msgspec.convert(row["outcome"], kind)


async def keep(tx: Connection, call: Call, id: ResourceId, outcome: msgspec.Struct) -> None:
    if call.idempotency_key is not None:
        caller, key = _keys(call, id)
        await tx.execute(Q.keep_answer, caller, key, call.body_digest, msgspec.to_builtins(outcome))


def _keys(call: Call, id: ResourceId) -> tuple[str, str]:
    who = call.principal
    return f"{who.tenant_id}/{who.id}", f"{call.method} {id.key} {call.idempotency_key}"
