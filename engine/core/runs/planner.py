"""Plans a step: reads its target group, resolves it, and writes the targets to the control database."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import asyncpg
import msgspec

from engine.core.runs.execution_store import Q
from engine.db.control_connection import ControlConnection
from engine.db.control_db import ControlDatabase
from engine.db.control_db import Q as S
from engine.model.credential import Credential
from engine.model.group_document import Document
from engine.scheduling.rollout import RolloutRules
from engine.scheduling.runs import Run, StepDefinition
from engine.targets.rerun_selection import RerunSelection
from engine.targets.resolution import Resolution, Target
from engine.targets.resolver import Resolver, TargetFilter, needs_listing
from engine.targets.server_retry import ServerRetry
from engine.targets.target_access import TargetAccess
from muster.core.errors import Fault, InvalidRequest
from muster.core.failpoints import reach

BEGUN = "Begun"
# Errors of a server whose system or version has no client_connection_check_interval.
CHECK_UNSUPPORTED = (asyncpg.InvalidParameterValueError, asyncpg.UndefinedObjectError)
MAX_INLINE_TARGETS = 1_000  # a plan with more is written in the background
WRITE_TIMEOUT = 900.0  # seconds to write a plan; a fleet has a million targets at most
LISTING_TIMEOUT = (
    60.0  # seconds for a server that is unavailable; the timeout of a step may be shorter
)
NOT_SUPPORTED = {
    "output": "output options",
}  # refused when a step is defined; a step of an older version of Muster may still have them


@dataclass(frozen=True)
class StepPlan:
    """The targets of a step before they are in the database."""

    arguments: tuple[Any, ...]  # of plan_step, after the epoch
    columns: tuple[list[Any], ...]
    rules: RolloutRules

    @property
    def is_large(self) -> bool:
        return len(self.columns[0]) > MAX_INLINE_TARGETS

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """As live_targets returns targets that were just planned."""
        _, servers, _, pools, databases, *_ = self.columns
        places = zip(servers, pools, databases, strict=True)
        for ordinal, (server, pool, database) in enumerate(places, 1):
            yield {
                "ordinal": ordinal,
                "attempts": 0,
                "not_before": None,
                "deadline": None,
                "server_id": server,
                "pool_name": pool,
                "database_name": database,
                "invocation_id": None,
            }


class Planner:
    def __init__(self, store: ControlDatabase, targets: TargetAccess) -> None:
        self._store = store
        self._targets = targets
        self._connection = ControlConnection(store)

    async def read(self, group: str) -> Document:
        return read_document(await self._connection.value(S.group_document, group))

    async def reach(self, run: Run, plan: StepDefinition) -> str:
        """Records that the run has begun, if it may, and entered this step."""
        reply: str = await self._connection.value(
            Q.reach_step, self._store.epoch, run.id, plan.step_id
        )
        return reply

    async def draft(self, run: Run, plan: StepDefinition, document: Document) -> StepPlan:
        """Resolves the targets. A Fault says why there are none."""
        refuse(plan)
        credential = await self._step_credential(plan) if needs_listing(document) else None
        retry = ServerRetry(self._targets.clock, min(LISTING_TIMEOUT, plan.timeout_seconds))
        discovery = self._targets.discovery(document)

        async def resolve(*filters: TargetFilter) -> Resolution:
            order_by = plan.order_by
            resolver = Resolver(
                document, discovery, credential, retry, filters=filters, order_by=order_by
            )
            return await resolver.resolve()

        selection = await self._rerun_selection(run, plan) if run.rerun else None
        if selection is not None:
            await reach("core.rerun_selected")
        resolution = await (
            selection.resolve(document, plan.order_by, resolve) if selection else resolve()
        )
        columns = _columns(resolution)
        rules = RolloutRules.of(plan.options, len(resolution.targets))
        arguments = (
            run.id,
            plan.step_id,
            snapshot_id(run, plan),
            document.target_group_id,
            bytes.fromhex(document.hash),
            document.directory.revision,
            msgspec.json.encode(_skipped(resolution)).decode(),
            *columns,
            rules.wave_starts,
        )
        return StepPlan(arguments, columns, rules)

    async def _rerun_selection(self, run: Run, plan: StepDefinition) -> RerunSelection:
        key = self._store.epoch, run.id, plan.step_id
        in_origin = await self._connection.value(Q.is_step_of_origin, *key)
        rows = await self._connection.fetch(Q.rerun_targets, *key)
        return RerunSelection.of(rows, in_origin=in_origin)

    async def _step_credential(self, plan: StepDefinition) -> Credential | None:
        """The credential of the step, unless its user name depends on the target."""
        if plan.credential_id is None:
            return None
        rows = await self._connection.fetch(Q.secrets, [plan.credential_id])
        if not rows or "$(" in rows[0]["username"]:
            return None
        return Credential.of(dict(rows[0]))

    async def write(self, draft: StepPlan) -> tuple[str, list[int] | None]:
        """Returns whether the run began, and which targets are skipped; None: the step was planned before."""
        async with self._store.calling(WRITE_TIMEOUT) as tx:
            await tx.execute(Q.plenty_of_time)
            with contextlib.suppress(*CHECK_UNSUPPORTED):
                async with tx.transaction():  # a savepoint
                    await tx.execute(Q.watch_client)
            row = await tx.fetchrow(Q.plan_step, self._store.epoch, *draft.arguments)
        assert row is not None
        return row["begun"], row["skipped"]

    def disconnect(self) -> None:
        self._connection.disconnect()


def read_document(text: str) -> Document:
    return msgspec.json.decode(text, type=Document)


def refuse(plan: StepDefinition) -> None:
    """Refuses options that have no effect: a status must not claim more than was done."""
    unsupported = [word for name, word in NOT_SUPPORTED.items() if name in plan.options]
    if plan.has_output:
        unsupported.append("an output table")
    if unsupported:
        message = f"This version can't carry out {', '.join(unsupported)}; nothing of this step was started."
        raise InvalidRequest(message, code="NotSupported")


def snapshot_id(run: Run, plan: StepDefinition) -> UUID:
    """Always the same for a step of a run: planning again is harmless."""
    return uuid5(run.id, f"step {plan.step_id}")


def reason_of(fault: Fault) -> str:
    return "NotSupported" if fault.code == "NotSupported" else "TargetsUnresolved"


def _columns(resolution: Resolution) -> tuple[list[Any], ...]:
    """Arguments of plan_step."""
    rows = [_row(target) for target in resolution.targets]
    return tuple(list(column) for column in zip(*rows, strict=True)) or tuple([] for _ in range(9))


def _row(target: Target) -> tuple[Any, ...]:
    labels = msgspec.json.encode(target.snapshot_labels).decode()
    return (
        target.type,
        target.server.server_id,
        target.server.name,
        target.pool,
        target.database,
        target.schema,
        labels,
        target.credential_id,
        target.rule,
    )


def _skipped(resolution: Resolution) -> list[dict[str, str]]:
    return [
        {"server": each.server, "database": each.database, "reason": each.reason}
        for each in resolution.skipped
    ]
