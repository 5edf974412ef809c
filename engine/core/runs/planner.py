"""Finds the targets of a step: its group is read and resolved into a draft of what the database is told."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid5

import asyncpg
import msgspec

from engine.core.runs.execution_store import Q
from engine.db.control_connection import ControlConnection
from engine.db.control_db import ControlDatabase
from engine.db.control_db import Q as S
from engine.model.credential import Credential
from engine.model.group_document import Document
from engine.scheduling.runs import Run, StepDefinition
from engine.targets.resolution import Resolution, Target
from engine.targets.resolver import Resolver, asks
from engine.targets.server_retry import ServerRetry
from engine.targets.target_access import TargetAccess
from muster.core.errors import Fault, InvalidRequest

BEGUN = "Begun"
# What a server says whose system, or whose version, can't watch its client.
CANNOT = (asyncpg.InvalidParameterValueError, asyncpg.UndefinedObjectError)
LARGE = 1_000  # targets; more are written beside everything else
LIMIT = 900.0  # seconds to write them; a fleet has a million targets at most
PATIENCE = 60.0  # seconds for a server that is away while it is listed; a step may have fewer
NOT_YET = {
    "rollout": "waves",
    "verify": "verification",
    "output": "output options",
}  # refused when a step is written; a step of an older version of Muster may still have them


@dataclass(frozen=True)
class StepPlan:
    """The targets of a step before they are in the database."""

    said: tuple[Any, ...]  # as plan_step takes them, behind the epoch
    columns: tuple[list[Any], ...]

    @property
    def is_large(self) -> bool:
        return len(self.columns[0]) > LARGE

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """As live_targets gives those that were just planned."""
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
        self._line = ControlConnection(store)

    async def read(self, group: str) -> Document:
        return read(await self._line.value(S.group_document, group))

    async def reach(self, run: Run, plan: StepDefinition) -> str:
        """The run has begun, if it may, and come to this step."""
        said: str = await self._line.value(Q.reach_step, self._store.epoch, run.id, plan.step_id)
        return said

    async def draft(self, run: Run, plan: StepDefinition, document: Document) -> StepPlan:
        """A Fault says why there are no targets."""
        refuse(plan)
        own = await self._own_login(plan) if asks(document) else None
        patience = ServerRetry(self._targets.clock, min(PATIENCE, plan.timeout_seconds))
        listing = self._targets.listing(document)
        found = await Resolver(document, listing, own, patience).resolve()
        columns = _columns(found)
        said = (
            run.id,
            plan.step_id,
            uuid5(run.id, f"step {plan.step_id}"),  # the snapshot: planning again is harmless
            document.target_group_id,
            bytes.fromhex(document.hash),
            document.directory.revision,
            msgspec.json.encode(_left_out(found)).decode(),
            *columns,
        )
        return StepPlan(said, columns)

    async def _own_login(self, plan: StepDefinition) -> Credential | None:
        """Whom the step names, unless it is somebody else at each target."""
        if plan.credential_id is None:
            return None
        rows = await self._line.fetch(Q.secrets, [plan.credential_id])
        if not rows or "$(" in rows[0]["username"]:
            return None
        return Credential.of(dict(rows[0]))

    async def write(self, draft: StepPlan) -> tuple[str, list[int] | None]:
        """Whether the run began, and which targets are skipped; None: they were planned before."""
        async with self._store.calling(LIMIT) as tx:
            await tx.execute(Q.plenty_of_time)
            with contextlib.suppress(*CANNOT):
                async with tx.transaction():  # a savepoint
                    await tx.execute(Q.watch_client)
            row = await tx.fetchrow(Q.plan_step, self._store.epoch, *draft.said)
        assert row is not None
        return row["begun"], row["skipped"]

    def hang_up(self) -> None:
        self._line.hang_up()


def read(text: str) -> Document:
    return msgspec.json.decode(text, type=Document)


def refuse(plan: StepDefinition) -> None:
    """What would be passed over in silence is refused: a status must not tell more than was done."""
    wanted = [word for name, word in NOT_YET.items() if name in plan.options]
    if plan.has_output:
        wanted.append("an output table")
    if plan.options.get("advance") == "perTarget":
        wanted.append("advance perTarget")
    if wanted:
        message = (
            f"This version can't carry out {', '.join(wanted)}; nothing of this step was started."
        )
        raise InvalidRequest(message, code="NotSupported")


def reason_of(fault: Fault) -> str:
    return "NotSupported" if fault.code == "NotSupported" else "TargetsUnresolved"


def _columns(found: Resolution) -> tuple[list[Any], ...]:
    """As plan_step takes them."""
    rows = [_row(target) for target in found.targets]
    return tuple(list(column) for column in zip(*rows, strict=True)) or tuple([] for _ in range(9))


def _row(target: Target) -> tuple[Any, ...]:
    labels = msgspec.json.encode(target.told).decode()
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


def _left_out(found: Resolution) -> list[dict[str, str]]:
    return [
        {"server": each.server, "database": each.database, "reason": each.reason}
        for each in found.left_out
    ]
