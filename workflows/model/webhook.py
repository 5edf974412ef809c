"""A webhook: a receiver of notifications about runs and schedules."""

from typing import ClassVar, Literal

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties

Notification = Literal[
    "failed",
    "succeeded",
    "recovered",
    "late",
    "missed",
    "halted",
    "autoDisableWarning",
    "autoDisabled",
]


class WebhookProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"pending", "delivered", "failed"})
    WRITE_ONLY: ClassVar = frozenset({"secret"})
    REQUIRED: ClassVar = frozenset({"url", "events"})

    url: Maybe[str] = UNSET
    secret: Maybe[str] = UNSET  # the key of the signature
    events: Maybe[list[Notification]] = UNSET
    jobs: Maybe[list[str]] = UNSET  # names; none: all jobs
    enabled: Maybe[bool] = UNSET
    max_attempts: Maybe[int] = UNSET


class Replay(Properties, frozen=True):
    event_ids: Maybe[list[str]] = UNSET  # none: all dead letters
