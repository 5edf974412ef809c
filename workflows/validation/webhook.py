"""What a webhook may be, and when the schedule of a failing job is disabled."""

from typing import Any

from muster.core.connect import Rules, check_host_syntax
from muster.core.errors import FieldError
from muster.core.settings import Settings
from muster.core.webhook import WRONG, receiver, webhook_settings
from workflows.validation import common

URL = "properties.url"
SECRET = "properties.secret"  # noqa: S105 - the name of a field
SHORTEST_SECRET, LONGEST_SECRET = 16, 256
MOST_JOBS = 1_000
MOST_ATTEMPTS = 20


def webhook(name: str, properties: dict[str, Any], settings: Settings) -> list[FieldError]:
    events = properties["events"]
    jobs = properties.get("jobs") or []
    errors = [
        *common.item_name(name),
        *_url(properties["url"], settings),
        *_secret(properties.get("secret")),
        *common.within("properties.maxAttempts", properties.get("maxAttempts"), 1, MOST_ATTEMPTS),
        *(error for each in jobs for error in common.item_name(each, "properties.jobs")),
    ]
    if not events or len(set(events)) < len(events):
        errors.append(FieldError("properties.events", "Name at least one event, each once."))
    if len(jobs) > MOST_JOBS:
        errors.append(FieldError("properties.jobs", f"At most {MOST_JOBS} jobs."))
    return errors


def _url(url: str, settings: Settings) -> list[FieldError]:
    """Without asking a name server: each delivery asks."""
    to = receiver(url)
    if to is None:
        return [FieldError(URL, f"The URL of a webhook {WRONG}.")]
    rules = Rules.of(webhook_settings(settings))
    found = check_host_syntax(to.host, to.port, rules, target=URL)
    return [FieldError(URL, error.message, "WebhookUrlNotAllowed") for error in found]


def _secret(secret: str | None) -> list[FieldError]:
    """The message never contains the secret."""
    if not secret:
        return []  # the old one stays; a new webhook without one is refused by the control database
    if not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        message = f"A secret has {SHORTEST_SECRET} to {LONGEST_SECRET} characters."
        return [FieldError(SECRET, message)]
    return []


def auto_disable(policy: dict[str, Any] | None) -> list[FieldError]:
    where = "properties.autoDisable"
    policy = policy or {}
    errors = []
    for name in ("failures", "warningFailures"):
        errors += common.within(f"{where}.{name}", policy.get(name), 0, 10_000)
    for name in ("days", "warningDays"):
        errors += common.within(f"{where}.{name}", policy.get(name), 0, 365)
    return errors
