"""Makes the targets of a step: its group is resolved, and run, step, snapshot and targets are one transaction.

Where servers must be asked, or the fleet is large, the run and its step begin before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid5

import msgspec

from engine.directory import Document
from engine.floor import Plan, Run
from engine.line import Line
from engine.resolver import Found, Resolver, Target, asks
from engine.road import Q
from engine.store import Q as S
from engine.store import Store
from engine.targets import Targets
from muster.core.errors import Fault, InvalidRequest
from muster.core.failpoints import reach

BEGUN = "Begun"
LARGE = 10_000  # targets; more are planned beside the others
LIMIT = 900.0  # seconds to store and plan them; a fleet has a million targets at most
NOT_YET = {
    "rollout": "waves",
    "verify": "verification",
    "output": "output options",
}  # options that this version keeps and can't carry out


@dataclass(frozen=True)
class Planned:
    begun: str  # or why the run does not begin, as begin_run_v1 says
    targets: Iterator[Mapping[str, Any]] | None = None  # None: they were planned before


class Planner:
    def __init__(self, store: Store, targets: Targets) -> None:
        self._store = store
        self._targets = targets
        self._line = Line(store)

    async def plan(self, run: Run, plan: Plan) -> Planned:
        """A Fault says why there are none; done twice, the first set stays."""
        _refuse(plan)
        text = await self._line.value(S.group_document, plan.target_group_name)
        document = msgspec.json.decode(text, type=Document)
        begun = await self.reach(run, plan) if asks(document) else BEGUN
        if begun != BEGUN:
            return Planned(begun)
        found = await Resolver(document, self._targets.listing(document)).resolve()
        if len(found.targets) > LARGE and (begun := await self.reach(run, plan)) != BEGUN:
            return Planned(begun)
        await reach("core.before_plan")
        columns = _columns(found)
        begun, skipped = await self._write(run, plan, document, found, columns)
        await reach("core.planned")
        return Planned(begun, None if skipped is None else _rows(columns, frozenset(skipped)))

    async def reach(self, run: Run, plan: Plan) -> str:
        """The run has begun, if it may, and come to this step."""
        said: str = await self._line.value(Q.reach_step, self._store.epoch, run.id, plan.step_id)
        return said

    async def _write(
        self, run: Run, plan: Plan, document: Document, found: Found, columns: tuple[list[Any], ...]
    ) -> Any:
        said = (
            self._store.epoch,
            run.id,
            plan.step_id,
            uuid5(run.id, f"step {plan.step_id}"),
            document.target_group_id,
            bytes.fromhex(document.hash),
            document.directory.revision,
            msgspec.json.encode(_left_out(found)).decode(),
            *columns,
        )
        if len(found.targets) <= LARGE:
            (row,) = await self._line.fetch(Q.plan_step, *said)
            return row
        async with self._store.calling(LIMIT) as tx:
            await tx.execute(Q.plenty_of_time)
            return await tx.fetchrow(Q.plan_step, *said)

    def hang_up(self) -> None:
        self._line.hang_up()


def _refuse(plan: Plan) -> None:
    """What would be passed over in silence is refused: a status must not tell more than was done."""
    wanted = [word for name, word in NOT_YET.items() if name in plan.options]
    if plan.has_output:
        wanted.append("an output table")
    if plan.options.get("advance") == "perTarget":
        wanted.append("advance perTarget")
    if wanted:
        message = f"This version can't carry out {', '.join(wanted)}; nothing was started."
        raise InvalidRequest(message, code="NotSupported")


def reason_of(fault: Fault) -> str:
    return "NotSupported" if fault.code == "NotSupported" else "TargetsUnresolved"


def _columns(found: Found) -> tuple[list[Any], ...]:
    """As plan_step_v1 takes them."""
    rows = [_row(target) for target in found.targets]
    return tuple(list(column) for column in zip(*rows, strict=True)) or tuple([] for _ in range(9))


def _row(target: Target) -> tuple[Any, ...]:
    labels = msgspec.json.encode(target.server.labels | target.labels).decode()
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


def _rows(columns: tuple[list[Any], ...], skipped: frozenset[int]) -> Iterator[Mapping[str, Any]]:
    """As live_targets_v1 gives those that were just planned."""
    _, servers, _, pools, databases, *_ = columns
    places = zip(servers, pools, databases, strict=True)
    for ordinal, (server, pool, database) in enumerate(places, 1):
        if ordinal not in skipped:
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


def _left_out(found: Found) -> list[dict[str, str]]:
    return [
        {"server": each.server, "database": each.database, "reason": each.reason}
        for each in found.left_out
    ]
