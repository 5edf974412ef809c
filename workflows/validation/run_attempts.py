"""What the attempts of runs may be, as a job or an account says it."""

from typing import Any

from muster.core.errors import FieldError
from workflows.validation.common import within

WHERE = "properties.runAttempts"
LIMITS = ("maxSuccessiveWithoutProgress", "maxWithoutProgress", "maxWithProgress")
MOST_ATTEMPTS = 100
MOST_PAUSES = 20
LONGEST_PAUSE = 86_400


def run_attempts(rules: dict[str, Any] | None, *, defaults: bool = False) -> list[FieldError]:
    """`defaults`: of an account; its numbers also hold for jobs that turn attempts on themselves."""
    if rules is None:
        return []
    if rules.get("enabled") is None:  # a PATCH may leave it out
        message = "This field is required: true or false."
        return [FieldError(f"{WHERE}.enabled", message, "MissingRequiredParameter")]
    errors = [
        error
        for name in LIMITS
        for error in within(f"{WHERE}.{name}", rules.get(name), 1, MOST_ATTEMPTS)
    ]
    errors += _pauses(rules.get("backoffSeconds"))
    if rules.get("enabled") is False and not defaults:
        errors += [
            FieldError(
                f"{WHERE}.{name}",
                f"With enabled: false, {name} has no effect: leave it out.",
                "OptionHasNoEffect",
            )
            for name in rules
            if name != "enabled"
        ]
    return errors


def _pauses(pauses: list[int] | None) -> list[FieldError]:
    where = f"{WHERE}.backoffSeconds"
    if pauses is None:
        return []
    if not 1 <= len(pauses) <= MOST_PAUSES:
        return [FieldError(where, f"A list of 1 to {MOST_PAUSES} numbers of seconds.")]
    return [
        error
        for place, seconds in enumerate(pauses)
        for error in within(f"{where}[{place}]", seconds, 0, LONGEST_PAUSE)
    ]
