"""Plans a step: reads its target group, resolves it, and writes the targets to the control database."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
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
from engine.model.task import UNLISTED
from engine.scheduling.rollout import RolloutRules
from engine.scheduling.run_state import NOT_STARTED
from engine.scheduling.runs import Run, StepDefinition
from engine.targets.chosen_targets import ChosenTargets, limited
from engine.targets.resolution import Resolution, Target
from engine.targets.resolver import Resolver, TargetFilter, needs_listing
from engine.targets.server_retry import ServerRetry
from engine.targets.target_access import TargetAccess
from muster.core.failpoints import reach

BEGUN = "Begun"
# Errors of a server whose system or version has no client_connection_check_interval.
CHECK_UNSUPPORTED = (asyncpg.InvalidParameterValueError, asyncpg.UndefinedObjectError)
MAX_INLINE_TARGETS = 1_000  # a plan with more is written in the background
WRITE_TIMEOUT = 900.0  # seconds to write a plan; a fleet has a million targets at most
LISTING_TIMEOUT = (
    60.0  # seconds for a server that is unavailable; the timeout of a step may be shorter
)


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
        _, servers, _, pools, databases, _, labels, *_ = self.columns
        places = zip(servers, pools, databases, labels, strict=True)
        for ordinal, (server, pool, database, label_text) in enumerate(places, 1):
            yield {
                **NOT_STARTED,
                "ordinal": ordinal,
                "server_id": server,
                "pool_name": pool,
                "database_name": database,
                "unlisted": f'"{UNLISTED}":' in label_text,
            }


class Planner:
    def __init__(self, store: ControlDatabase, targets: TargetAccess) -> None:
        self._store = store
        self._targets = targets
        self._connection = ControlConnection(store)

    async def read(self, group: str | None) -> Document:
        """Without a group: the servers, for targets that the caller of a run named."""
        return read_document(await self._connection.value(S.group_document, group))

    async def reach(self, run: Run, plan: StepDefinition) -> str:
        """Records that the run has begun, if it may, and entered this step."""
        reply: str = await self._connection.value(
            Q.reach_step, self._store.epoch, run.id, plan.step_id
        )
        return reply

    async def draft(self, run: Run, plan: StepDefinition, document: Document) -> StepPlan:
        """Resolves the targets. A Fault says why there are none."""
        chosen = await self._chosen_targets(run, plan)
        if chosen is not None:
            document = chosen.document(document)
            await reach("core.targets_chosen")
        patience = min(LISTING_TIMEOUT, plan.timeout_seconds)
        resolution = await self.resolve(plan, document, chosen, patience=patience)
        if run.limit is not None:
            key = self._store.epoch, run.id, plan.step_id
            earlier = await self._connection.fetch(Q.earlier_targets, *key)
            resolution = limited(resolution, run.limit, earlier)
        columns = snapshot_columns(resolution.targets)
        rules = RolloutRules.of(plan.options, len(resolution.targets))
        arguments = (
            run.id,
            plan.step_id,
            snapshot_id(run, plan),
            document.target_group_id,
            bytes.fromhex(document.hash),
            document.directory.revision,
            left_out_text(resolution),
            *columns,
            rules.wave_starts,
        )
        return StepPlan(arguments, columns, rules)

    async def list_again(
        self, run: Run, plan: StepDefinition, servers: frozenset[str]
    ) -> tuple[Document, Resolution] | None:
        """Resolves the members of these servers, as they were when the step began.

        None: no further target may join (a plan or a limit fixed them), or the group was changed while the step was
        planned, so what it was is unknown.
        """
        if run.chosen == "plan" or run.limit is not None:
            return None
        key = self._store.epoch, run.id, plan.step_id
        text = await self._connection.value(Q.unlisted_document, *key)
        if text is None:
            return None
        document = read_document(text)
        chosen = await self._chosen_targets(run, plan)
        if chosen is not None:
            chosen = chosen.of_servers(servers)
            document = chosen.document(document)
        return document, await self.resolve(plan, document, chosen, patience=0.0, servers=servers)

    async def resolve(
        self,
        plan: StepDefinition,
        document: Document,
        chosen: ChosenTargets | None = None,
        *,
        patience: float,
        servers: frozenset[str] | None = None,
        check_named: bool = False,
    ) -> Resolution:
        """`patience`: seconds for a server that is unavailable; `servers`: only members of these."""
        credential = await self._step_credential(plan) if needs_listing(document) else None
        retry = ServerRetry(self._targets.clock, patience)
        discovery = self._targets.discovery(document)

        async def resolve(*filters: TargetFilter) -> Resolution:
            order_by = plan.order_by
            resolver = Resolver(
                document, discovery, credential, retry, filters=filters, order_by=order_by,
                servers=servers,
            )  # fmt: skip
            return await resolver.resolve(check_named=check_named)

        if chosen is None:
            return await resolve()
        return await chosen.resolve(document, plan.order_by, resolve)

    async def _chosen_targets(self, run: Run, plan: StepDefinition) -> ChosenTargets | None:
        if run.chosen is None:
            return None
        key = self._store.epoch, run.id, plan.step_id
        rows = await self._connection.fetch(Q.chosen_targets, *key)
        if run.chosen == "rerun":
            in_origin = await self._connection.value(Q.is_step_of_origin, *key)
            named = await self._connection.value(Q.origin_named_targets, *key[:2])
            return ChosenTargets.of_rerun(rows, in_origin=in_origin, named=named)
        return (
            ChosenTargets.of_plan(rows) if run.chosen == "plan" else ChosenTargets.of_caller(rows)
        )

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


def snapshot_id(run: Run, plan: StepDefinition) -> UUID:
    """Always the same for a step of a run: planning again is harmless."""
    return uuid5(run.id, f"step {plan.step_id}")


def snapshot_columns(targets: Iterable[Target]) -> tuple[list[Any], ...]:
    """Arguments of plan_step, join_targets and store_snapshot."""
    rows = [_row(target) for target in targets]
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


def left_out_text(resolution: Resolution) -> str:
    """The databases that are no targets, as a snapshot stores them."""
    skipped = [
        {"server": each.server, "database": each.database, "reason": each.reason}
        for each in resolution.skipped
    ]
    return msgspec.json.encode(skipped).decode()
