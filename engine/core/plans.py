"""Plans of jobs: the targets of each step, stored as snapshots, and a document about them. Nothing is started."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid5

import asyncpg
import msgspec

from engine.context.core_context import CoreContext
from engine.core.runs.execution_store import Q
from engine.core.runs.planner import (
    WRITE_TIMEOUT,
    Planner,
    left_out_text,
    snapshot_columns,
)
from engine.model.group_document import Document
from engine.scheduling.forecast import job_seconds, least_seconds
from engine.scheduling.limits import budget_of
from engine.scheduling.rollout import RolloutRules
from engine.scheduling.runs import StepDefinition
from engine.targets.resolution import Resolution, Target
from muster.core import script_reader
from muster.core.errors import Fault
from muster.core.script import Transaction

MAX_STATEMENT_LENGTH = 200  # characters of a statement that a plan shows
Shown = Callable[[Resolution], dict[str, Any]]  # the lists of a resolution, as REST shows them


class PlannedOutput(msgspec.Struct, frozen=True, rename="camel"):
    server_name: str
    database_name: str
    schema_name: str
    table_name: str
    server_exists: bool
    disabled: bool
    has_credential: bool  # for every target: of the output, the step or the server

    def shown(self, document: Document, reached: Sequence[Target]) -> dict[str, Any]:
        """Credentials by the rule of jobs_internal.output_place."""
        without = [each for each in reached if document.credential(each.credential_id) is None]
        place: dict[str, Any] = msgspec.to_builtins(self)
        del place["hasCredential"]
        return {**place, "missingCredentialCount": 0 if self.has_credential else len(without)}


class Script(msgspec.Struct, frozen=True):
    script: str
    transaction: Transaction
    attempts: int  # of earlier runs that succeeded
    seconds: float | None = None  # that one of them took
    output: PlannedOutput | None = None


class PlanInput(msgspec.Struct, frozen=True, rename="camel"):
    job_id: UUID
    version: int
    steps: tuple[StepDefinition, ...]
    scripts: tuple[Script, ...]


class ServerLimits(msgspec.Struct, frozen=True):
    server_id: str
    max_connections: int | None
    budget: int | None
    disabled: bool

    @property
    def connections(self) -> int | None:
        """None: no host has contacted the server yet."""
        known = self.max_connections or self.budget
        return budget_of(known) if known else None


class PlanMaker:
    """Makes one plan."""

    def __init__(self, context: CoreContext, shown: Shown) -> None:
        self._store = context.store
        self._planner = Planner(context.store, context.targets)
        self._shown = shown
        self._resolutions: dict[object, tuple[Document, Resolution]] = {}

    async def make(self, plan_id: UUID, job: str) -> None:
        epoch = self._store.epoch
        try:
            async with self._store.calling() as tx:
                text = await tx.fetchval(Q.plan_input, epoch, job)
                row = await tx.fetchrow(Q.look, epoch)
            given = msgspec.json.decode(text, type=PlanInput)
            assert row is not None
            rows = msgspec.json.decode(row["limits"], type=list[ServerLimits])
            limits = {each.server_id.lower(): each for each in rows}
            steps = [
                await self._step(step, script, limits)
                for step, script in zip(given.steps, given.scripts, strict=True)
            ]
            async with self._store.calling(WRITE_TIMEOUT) as tx:
                await tx.execute(Q.plenty_of_time)
                snapshots = await self._store_snapshots(tx, plan_id, given.steps)
                document = msgspec.json.encode(_document(given.steps, steps)).decode()
                columns = list(snapshots), list(snapshots.values())
                await tx.execute(
                    Q.store_plan, epoch, plan_id, given.job_id, given.version, document, *columns
                )
        finally:
            self._planner.disconnect()

    async def _step(
        self, step: StepDefinition, script: Script, limits: dict[str, ServerLimits]
    ) -> dict[str, Any]:
        shown: dict[str, Any] = {"stepId": step.step_id, "stepName": step.name}
        shown["targetGroup"] = step.target_group_name
        analysis = await script_reader.analyse(script.script, script.transaction)
        shown["outsideTransaction"] = [
            each.text.strip()[:MAX_STATEMENT_LENGTH]
            for each in analysis.script.statements
            if script.transaction == "none" or not each.transactional
        ]
        try:
            document, resolution = await self._resolve(step)
        except Fault as fault:
            if fault.code == "ControlDatabaseUnavailable":
                raise
            return {**shown, "error": {"code": fault.code, "message": fault.message}}
        return shown | self._targets(step, script, document, resolution, limits)

    async def _resolve(self, step: StepDefinition) -> tuple[Document, Resolution]:
        """Steps with the same group have the same targets."""
        key = step.target_group_id, step.order_by, step.credential_id
        if key not in self._resolutions:
            document = await self._planner.read(step.target_group_name)
            resolution = await self._planner.resolve(step, document, patience=0, check_named=True)
            self._resolutions[key] = document, resolution
        return self._resolutions[key]

    def _targets(
        self,
        step: StepDefinition,
        script: Script,
        document: Document,
        resolution: Resolution,
        limits: dict[str, ServerLimits],
    ) -> dict[str, Any]:
        targets = resolution.targets
        reached = [target for target in targets if target.error is None]
        rules = RolloutRules.of(step.options, len(targets))
        shown = self._shown(resolution)
        waves = [
            bisect_left(rules.wave_ends, ordinal) + 1
            for ordinal, target in enumerate(targets, 1)
            if target.error is None
        ]
        for target, wave in zip(shown["targets"], waves, strict=False):
            target["wave"] = wave
        ends = (0, *rules.wave_ends)
        counts = [end - begin for begin, end in pairwise(ends)]
        missing = Counter(
            target.server.name for target in reached if _has_no_credential(step, document, target)
        )
        known = {target.server.server_id.lower() for target in targets} & set(limits)
        stuck = any(limits[id].disabled for id in known)
        seconds = None
        if script.seconds is not None and not stuck:
            places = [(target.server.server_id.lower(), target.pool) for target in targets]
            budgets = {place[0]: _connections(limits, place[0])[1] for place in places}
            seconds = least_seconds(places, rules, budgets, step.max_parallelism, script.seconds)
        return {
            **shown,
            "waves": [{"wave": wave, "count": count} for wave, count in enumerate(counts, 1)],
            "servers": _servers(reached, limits),
            "maxParallelism": step.max_parallelism,
            "missingCredentials": [
                {"serverName": name, "count": count} for name, count in sorted(missing.items())
            ],
            **({"output": script.output.shown(document, reached)} if script.output else {}),
            "earlierAttempts": {"count": script.attempts, "averageSeconds": script.seconds},
            "shortestSeconds": seconds,
        }

    async def _store_snapshots(
        self, tx: asyncpg.Connection, plan_id: UUID, steps: Sequence[StepDefinition]
    ) -> dict[int, UUID]:
        """The snapshot of each step that has one: steps with the same targets share it."""
        snapshots: dict[object, UUID] = {}
        for number, (key, (document, resolution)) in enumerate(self._resolutions.items()):
            snapshots[key] = uuid5(plan_id, f"snapshot {number}")
            # Whether a database that is only named can be reached is found out when the script runs.
            targets = [
                replace(target, error=None) if target.named else target
                for target in resolution.targets
            ]
            await tx.execute(
                Q.store_snapshot,
                self._store.epoch,
                snapshots[key],
                document.target_group_id,
                bytes.fromhex(document.hash),
                document.directory.revision,
                left_out_text(resolution),
                *snapshot_columns(targets),
            )
        keys = {
            step.step_id: (step.target_group_id, step.order_by, step.credential_id)
            for step in steps
        }
        return {id: snapshots[key] for id, key in keys.items() if key in snapshots}


def _document(definitions: Sequence[StepDefinition], steps: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = (step.get("shortestSeconds") for step in steps)
    per_target = (step.is_per_target for step in definitions)
    return {
        "count": sum(step.get("count", 0) for step in steps),
        "shortestSeconds": job_seconds(zip(per_target, seconds, strict=True)),
        "steps": steps,
    }


def _servers(targets: Sequence[Target], limits: dict[str, ServerLimits]) -> list[dict[str, Any]]:
    names = {target.server.server_id.lower(): target.server.name for target in targets}
    counts = Counter(target.server.server_id.lower() for target in targets)
    return [
        {
            "serverName": name,
            "count": counts[id],
            "connections": _connections(limits, id)[0],
            "disabled": id in limits and limits[id].disabled,
        }
        for id, name in sorted(names.items(), key=lambda each: each[1])
    ]


def _connections(limits: dict[str, ServerLimits], server_id: str) -> tuple[int | None, int]:
    """As known, and as the core assumes until it is known."""
    known = limits[server_id].connections if server_id in limits else None
    return known, known or budget_of(None)


def _has_no_credential(step: StepDefinition, document: Document, target: Target) -> bool:
    """By the rule of jobs_internal.expand_dispatch."""
    if step.credential_id is not None:
        return False
    return document.credential(target.credential_id, name=target.server.job_credential) is None
