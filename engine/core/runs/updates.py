"""Decodes new runs and cancellations, as the control database returns them."""

from datetime import date
from typing import Any, Literal
from uuid import UUID

import msgspec

from engine.core.runs.cancellations import Cancellation
from engine.core.runs.rollouts import RolloutUpdate
from engine.scheduling.run_attempts import RunAttemptRules
from engine.scheduling.runs import ReachedStep, Run, StepDefinition


class _RunRow(msgspec.Struct, frozen=True):
    job_execution_id: UUID
    job_id: UUID
    job_name: str
    job_version: int
    run_day: date
    lifecycle: str
    cancel_requested_at: str | None
    chosen: Literal["rerun", "plan", "caller"] | None
    overrides: dict[str, Any]
    retries: int
    steps: tuple[StepDefinition, ...]
    reached: tuple[ReachedStep, ...]
    run_attempts: RunAttemptRules | None = None
    next_attempt: float | None = None


class _CancellationRow(msgspec.Struct, frozen=True):
    cancellation_id: UUID
    job_execution_id: UUID
    step_id: int | None
    ordinal: int | None


class _RetriesRow(msgspec.Struct, frozen=True):
    job_execution_id: UUID
    retries: int


def runs(text: str) -> list[Run]:
    return [
        Run(
            id=each.job_execution_id,
            job_id=each.job_id,
            job_name=each.job_name,
            version=each.job_version,
            day=each.run_day,
            steps=each.steps,
            reached={step.step_id: step for step in each.reached},
            begun=each.lifecycle != "Created",
            canceled=each.cancel_requested_at is not None,
            chosen=each.chosen,
            limit=each.overrides.get("limit"),
            retries=each.retries,
            attempt_rules=each.run_attempts,
            next_attempt=each.next_attempt,
        )
        for each in _read(text, _RunRow)
    ]


def cancellations(text: str) -> list[Cancellation]:
    return [
        Cancellation(each.cancellation_id, each.job_execution_id, each.step_id, each.ordinal)
        for each in _read(text, _CancellationRow)
    ]


def retries(text: str) -> dict[UUID, int]:
    return {each.job_execution_id: each.retries for each in _read(text, _RetriesRow)}


def rollouts(text: str) -> list[RolloutUpdate]:
    updates: list[RolloutUpdate] = _read(text, RolloutUpdate)
    return updates


def _read(text: str, kind: Any) -> Any:
    return msgspec.json.decode(text, type=list[kind])
