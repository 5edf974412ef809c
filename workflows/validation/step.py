"""What a step may be; muster.core.script validates its script."""

import re
from typing import Any

from muster.core.errors import FieldError
from workflows.validation import common

P = "properties"
MOST = 2_147_483  # seconds and attempts: what clients can say
DEFAULTS = {"initialRetryIntervalSeconds": 1, "maximumRetryIntervalSeconds": 120}
PERCENT = re.compile(r"(?!0+(?:\.0+)?%)(?:100|[0-9]{1,2}(?:\.[0-9]+)?)%")
ORDER = re.compile(r"random\([0-9]{1,18}\)|(?!random\()[^\x00-\x1f]{1,200}")
PAUSE = re.compile(r"P(?=.)(?:[0-9]+D)?(?:T(?=.)(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?")
SQLSTATE = re.compile(r"[0-9A-Z]{2}(?:[0-9A-Z]{3})?")
PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
LARGEST_COUNT = 9_999_999
UNSUPPORTED = ("output", "verify")  # this version can't carry them out


def step(name: str, given: dict[str, Any]) -> list[FieldError]:
    return [
        *common.item_name(name),
        *_unsupported(given),
        *common.within(f"{P}.stepId", given.get("stepId"), 1, 100),
        *_execution_options(given.get("executionOptions") or {}),
        *_output(given.get("output")),
        *_settings(given.get("settings") or {}),
        *_rollout(given.get("rollout")),
        *_verify(given.get("verify")),
        *_retry_on(given.get("retryOn") or []),
        *_guard(given),
        *common.within(f"{P}.slotsPerDatabase", given.get("slotsPerDatabase"), 1, LARGEST_COUNT),
        *common.within(f"{P}.jitter", given.get("jitter"), 0, 1),
    ]


def _unsupported(given: dict[str, Any]) -> list[FieldError]:
    """An option without effect would make a status claim more than was done."""
    code = "OptionNotSupported"
    errors = [
        FieldError(f"{P}.{name}", f"'{name}' is not supported by this version: leave it out.", code)
        for name in UNSUPPORTED
        if given.get(name) is not None
    ]
    if given.get("advance") == "perTarget":
        message = "'perTarget' is not supported by this version: leave it out, or use 'barrier'."
        errors.append(FieldError(f"{P}.advance", message, code))
    return errors


def _guard(given: dict[str, Any]) -> list[FieldError]:
    """Its row stands in the script's own transaction; whether the script has one is judged with it."""
    access = (given.get("settings") or {}).get("access", "readWrite")
    if given.get("guard") and (access != "readWrite" or given.get("transaction") == "none"):
        return [unguarded()]
    return []


def unguarded() -> FieldError:
    return FieldError(f"{P}.guard", "Needs a script that writes, in a transaction of its own.")


def _execution_options(given: dict[str, Any]) -> list[FieldError]:
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
        for error in common.within(f"{where}.{name}", given.get(name), low, high)
    ]
    first, last = (given.get(name, value) for name, value in DEFAULTS.items())
    if not errors and last < first:
        message = f"Must not be below initialRetryIntervalSeconds, {first}; it is {last}."
        errors.append(FieldError(f"{where}.maximumRetryIntervalSeconds", message))
    return errors


def _output(given: dict[str, Any] | None) -> list[FieldError]:
    if given is None:
        return []
    errors = []
    for name in ("databaseName", "schemaName", "tableName"):
        text = given.get(name)
        if text is not None and (why := common.identifier(text)):
            errors.append(FieldError(f"{P}.output.{name}", why))
    if not given["serverName"]:
        errors.append(FieldError(f"{P}.output.serverName", "The server must be named."))
    return errors


def _settings(given: dict[str, Any]) -> list[FieldError]:
    where = f"{P}.settings"
    errors = common.within(f"{where}.lockTimeoutSeconds", given.get("lockTimeoutSeconds"), 0, MOST)
    for name in ("role", "searchPath"):
        text = given.get(name)
        if text is not None and not (0 < len(text) <= 1000 and not common.invisible(text)):
            message = "1 to 1000 characters, none of them invisible."
            errors.append(FieldError(f"{where}.{name}", message))
    errors += [
        FieldError(f"{where}.parameters.{name[:80]}", "A PostgreSQL parameter has another name.")
        for name in given.get("parameters") or {}
        if not PARAMETER.fullmatch(name)
    ]
    return errors


def _rollout(given: dict[str, Any] | None) -> list[FieldError]:
    if given is None:
        return []
    where = f"{P}.rollout"
    errors = []
    if not given["waves"] or not all(_count_or_percent(wave) for wave in given["waves"]):
        message = 'A list of counts and percentages such as [1, "5%", "100%"].'
        errors.append(FieldError(f"{where}.waves", message))
    halt = given.get("haltAfterFailures")
    if halt is not None and not _count_or_percent(halt):
        message = 'A count from 1 or a percentage such as "5%".'
        errors.append(FieldError(f"{where}.haltAfterFailures", message))
    pause = given.get("pauseBetween")
    if pause is not None and not PAUSE.fullmatch(pause):
        message = "A duration such as PT10M."
        errors.append(FieldError(f"{where}.pauseBetween", message, "InvalidDuration"))
    order = given.get("orderBy")
    if order is not None and not ORDER.fullmatch(order):
        message = "random(seed), where seed is a whole number, or the name of a label."
        errors.append(FieldError(f"{where}.orderBy", message))
    return errors


def _count_or_percent(value: Any) -> bool:
    if isinstance(value, str):
        return PERCENT.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_COUNT


def _verify(given: dict[str, Any] | None) -> list[FieldError]:
    if given is None:
        return []
    where = f"{P}.verify"
    errors = common.within(f"{where}.timeoutSeconds", given.get("timeoutSeconds"), 1, MOST)
    if not given["sql"].strip():
        errors.append(FieldError(f"{where}.sql", "A query is needed."))
    if (given.get("expect") == "value") != ("value" in given):
        message = 'value belongs to expect "value", and only there.'
        errors.append(FieldError(f"{where}.value", message))
    elif not isinstance(given.get("value", ""), str | int | float):
        errors.append(FieldError(f"{where}.value", "A text, a number or a boolean."))
    return errors


def _retry_on(given: list[str]) -> list[FieldError]:
    return [
        FieldError(f"{P}.retryOn[{at}]", "An SQLSTATE of five characters, or its class of two.")
        for at, state in enumerate(given)
        if not SQLSTATE.fullmatch(state)
    ]
