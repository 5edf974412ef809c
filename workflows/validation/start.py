"""What the body of a start may say."""

import re
from typing import Any

from muster.core.errors import FieldError
from workflows.validation import common
from workflows.validation.step import LARGEST_COUNT, MOST, rollout_errors

MOST_TARGETS = 10_000
MOST_ERRORS = 20
LONGEST = {"serverName": 253, "databaseName": 63, "schemaName": 63}  # bytes
UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
LIMITS = {
    "timeoutSeconds": (1, MOST),
    "retryAttempts": (0, MOST),
    "maxParallelism": (1, LARGEST_COUNT),
    "lockTimeoutSeconds": (0, MOST),
}


def start(body: dict[str, Any]) -> list[FieldError]:
    if "planId" in body:
        if not UUID.fullmatch(body["planId"]):
            return [FieldError("planId", "The id of a plan, as POST …/plan shows it.")]
        return [
            FieldError(name, "A plan is started as it is: leave it out, or planId.")
            for name in ("targets", "limit", "overrides")
            if name in body
        ]
    return [*targets(body.get("targets")), *limit(body), *_overrides(body.get("overrides"))]


def limit(body: dict[str, Any]) -> list[FieldError]:
    return common.within("limit", body.get("limit"), 1, LARGEST_COUNT)


def targets(listed: list[dict[str, Any]] | None) -> list[FieldError]:
    if listed is None:
        return []
    if not 0 < len(listed) <= MOST_TARGETS:
        message = f"1 to {MOST_TARGETS} targets; without the property, those of the target groups."
        return [FieldError("targets", message)]
    errors: list[FieldError] = []
    for at, target in enumerate(listed):
        errors += _target(f"targets[{at}]", target)
        if len(errors) >= MOST_ERRORS:
            break
    return errors


def _target(where: str, target: dict[str, Any]) -> list[FieldError]:
    errors = [
        FieldError(f"{where}.{name}", f"1 to {most} bytes, none of them invisible.")
        for name, most in LONGEST.items()
        if (text := target.get(name)) is not None
        and (not 0 < len(text.encode()) <= most or common.invisible(text))
    ]
    if "schemaName" in target and "databaseName" not in target:
        errors.append(FieldError(f"{where}.databaseName", "A schema needs its database."))
    return errors


def _overrides(overrides: dict[str, Any] | None) -> list[FieldError]:
    if overrides is None:
        return []
    if not overrides:
        return [FieldError("overrides", "At least one option; without the property, the steps'.")]
    errors = [
        error
        for name, (low, high) in LIMITS.items()
        for error in common.within(f"overrides.{name}", overrides.get(name), low, high)
    ]
    return errors + rollout_errors(overrides.get("rollout"), "overrides.rollout")
