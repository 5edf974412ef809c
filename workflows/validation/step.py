"""What a step may be; muster.core.script validates its script."""

import re
from typing import Any

from muster.core.errors import FieldError
from muster.core.session_settings import is_reserved, names_catalog
from workflows.validation import common

P = "properties"
MOST = 2_147_483  # seconds and attempts: what clients can say
DEFAULTS = {"initialRetryIntervalSeconds": 1, "maximumRetryIntervalSeconds": 120}
PERCENT = re.compile(r"(?!0+(?:\.0+)?%)(?:100|[0-9]{1,2}(?:\.[0-9]+)?)%")
ORDER = re.compile(r"random\([0-9]{1,18}\)|(?!random\()[^\x00-\x1f]{1,200}")
PAUSE = re.compile(
    r"P(?=.)(?:[0-9]{1,4}D)?(?:T(?=.)(?:[0-9]{1,7}H)?(?:[0-9]{1,7}M)?(?:[0-9]{1,7}S)?)?"
)
SQLSTATE = re.compile(r"[0-9A-Z]{2}(?:[0-9A-Z]{3})?")
PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
LARGEST_COUNT = 9_999_999
MOST_WAVES = 100  # a run shows its own in every list


def step(name: str, properties: dict[str, Any]) -> list[FieldError]:
    return [
        *common.item_name(name),
        *common.within(f"{P}.stepId", properties.get("stepId"), 1, 100),
        *_execution_options(properties.get("executionOptions") or {}),
        *_output(properties.get("output")),
        *_settings(properties.get("settings") or {}),
        *rollout_errors(properties.get("rollout"), f"{P}.rollout"),
        *_chain(properties),
        *_verify(properties.get("verify")),
        *_retry_on(properties.get("retryOn") or []),
        *_guard(properties),
        *common.within(
            f"{P}.slotsPerDatabase", properties.get("slotsPerDatabase"), 1, LARGEST_COUNT
        ),
        *common.within(f"{P}.jitter", properties.get("jitter"), 0, 1),
    ]


def _chain(properties: dict[str, Any]) -> list[FieldError]:
    if properties.get("advance") != "perTarget" or properties.get("rollout") is None:
        return []
    message = "A step with advance 'perTarget' follows the rollout of the step before: write it there, or use 'barrier'."
    return [FieldError(f"{P}.rollout", message)]


def _guard(properties: dict[str, Any]) -> list[FieldError]:
    """Its row stands in the script's own transaction; whether the script has one is judged with it."""
    access = (properties.get("settings") or {}).get("access", "readWrite")
    if properties.get("guard") and (
        access != "readWrite" or properties.get("transaction") == "none"
    ):
        return [unguarded()]
    return []


def unguarded() -> FieldError:
    return FieldError(f"{P}.guard", "Needs a script that writes, in a transaction of its own.")


def _execution_options(options: dict[str, Any]) -> list[FieldError]:
    where = f"{P}.executionOptions"
    limits = {
        "timeoutSeconds": (1, MOST),
        "retryAttempts": (0, MOST),
        "initialRetryIntervalSeconds": (1, MOST),
        "maximumRetryIntervalSeconds": (1, MOST),
        "retryIntervalBackoffMultiplier": (1, 1000),
        "maxParallelism": (1, LARGEST_COUNT),
    }
    errors = [
        error
        for name, (low, high) in limits.items()
        for error in common.within(f"{where}.{name}", options.get(name), low, high)
    ]
    first, last = (options.get(name, value) for name, value in DEFAULTS.items())
    if not errors and last < first:
        message = f"Must not be below initialRetryIntervalSeconds, {first}; it is {last}."
        errors.append(FieldError(f"{where}.maximumRetryIntervalSeconds", message))
    return errors


def _output(output: dict[str, Any] | None) -> list[FieldError]:
    if output is None:
        return []
    errors = []
    for name in ("databaseName", "schemaName", "tableName"):
        text = output.get(name)
        if text is not None and (why := common.identifier(text)):
            errors.append(FieldError(f"{P}.output.{name}", why))
    if is_system_schema(output.get("schemaName") or ""):
        message = "Not a schema of PostgreSQL's own."
        errors.append(FieldError(f"{P}.output.schemaName", message))
    if not output["serverName"]:
        errors.append(FieldError(f"{P}.output.serverName", "The server must be named."))
    return errors


def is_system_schema(name: str) -> bool:
    return name.startswith("pg_") or name == "information_schema"


def _settings(settings: dict[str, Any]) -> list[FieldError]:
    where = f"{P}.settings"
    errors = common.within(
        f"{where}.lockTimeoutSeconds", settings.get("lockTimeoutSeconds"), 0, MOST
    )
    for name in ("role", "searchPath"):
        text = settings.get(name)
        if text is not None and not (0 < len(text) <= 1000 and not common.invisible(text)):
            message = "1 to 1000 characters, none of them invisible."
            errors.append(FieldError(f"{where}.{name}", message))
    if names_catalog(settings.get("searchPath") or ""):
        message = "pg_catalog is searched first in any case: leave it out."
        errors.append(FieldError(f"{where}.searchPath", message))
    for name in settings.get("parameters") or {}:
        if not PARAMETER.fullmatch(name):
            message = "A PostgreSQL parameter has another name."
            errors.append(FieldError(f"{where}.parameters.{name[:80]}", message))
        elif is_reserved(name):
            message = "It has a property of its own, or Muster sets it."
            errors.append(FieldError(f"{where}.parameters.{name[:80]}", message))
    return errors


def rollout_errors(rollout: dict[str, Any] | None, where: str) -> list[FieldError]:
    if rollout is None:
        return []
    errors = []
    if not rollout["waves"] or not all(_count_or_percent(wave) for wave in rollout["waves"]):
        message = 'A list of counts and percentages such as [1, "5%", "100%"].'
        errors.append(FieldError(f"{where}.waves", message))
    elif len(rollout["waves"]) > MOST_WAVES:
        errors.append(FieldError(f"{where}.waves", f"At most {MOST_WAVES} waves."))
    halt = rollout.get("haltAfterFailures")
    if halt is not None and not _count_or_percent(halt):
        message = 'A count from 1 or a percentage such as "5%".'
        errors.append(FieldError(f"{where}.haltAfterFailures", message))
    pause = rollout.get("pauseBetween")
    if pause is not None and not PAUSE.fullmatch(pause):
        message = "A duration such as PT10M, of at most 9999D, 9999999H, 9999999M and 9999999S."
        errors.append(FieldError(f"{where}.pauseBetween", message, "InvalidDuration"))
    order = rollout.get("orderBy")
    if order is not None and not ORDER.fullmatch(order):
        message = "random(seed), where seed is a whole number, or the name of a label."
        errors.append(FieldError(f"{where}.orderBy", message))
    return errors


def _count_or_percent(value: Any) -> bool:
    if isinstance(value, str):
        return PERCENT.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_COUNT


def _verify(verify: dict[str, Any] | None) -> list[FieldError]:
    if verify is None:
        return []
    where = f"{P}.verify"
    errors = common.within(f"{where}.timeoutSeconds", verify.get("timeoutSeconds"), 1, MOST)
    if not verify["sql"].strip():
        errors.append(FieldError(f"{where}.sql", "A query is needed."))
    if (verify.get("expect") == "value") != ("value" in verify):
        message = 'value belongs to expect "value", and only there.'
        errors.append(FieldError(f"{where}.value", message))
    elif not isinstance(verify.get("value", ""), str | int | float):
        errors.append(FieldError(f"{where}.value", "A text, a number or a boolean."))
    return errors


def _retry_on(codes: list[str]) -> list[FieldError]:
    return [
        FieldError(f"{P}.retryOn[{at}]", "An SQLSTATE of five characters, or its class of two.")
        for at, state in enumerate(codes)
        if not SQLSTATE.fullmatch(state)
    ]
