"""Delivers events to webhooks, a bounded number at a time, and never in the way of another service.

A delivery is recorded after its answer: one whose answer or record is lost is sent again under the same event id.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from engine.context.core_context import CoreContext
from engine.core.service import Service
from engine.db.wakeups import DELIVERIES
from muster.core import telemetry
from muster.core.errors import Fault
from muster.core.failpoints import reach
from muster.core.sealing import belongs_to_webhook, open_sealed
from muster.core.settings import Secret
from muster.core.sql import Queries
from muster.core.version import VERSION
from muster.core.webhook import next_pause, receiver, sign
from muster.core.webhook_client import DeliveryError, refusal

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "events.sql")

INTERVAL = timedelta(seconds=1)
MAX_PARALLEL = 32  # deliveries of the account
MAX_PARALLEL_OF_WEBHOOK = 2  # a receiver that hangs leaves the others their share

DELIVERED, RETRIED, DEAD_LETTER = "delivered", "retried", "failed"  # outcomes of an attempt

Key = tuple[UUID, int]  # webhook, event


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A row of due_deliveries."""

    webhook_id: UUID
    number: int
    name: str
    url: str
    secret: str
    attempts: int
    max_attempts: int
    event_id: UUID
    kind: str
    notifications: list[str]
    job_execution_id: UUID | None
    payload: str
    created_at: datetime
    database_id: UUID

    @property
    def key(self) -> Key:
        return self.webhook_id, self.number

    def body(self, account: UUID) -> bytes:
        """The same bytes for each attempt."""
        created_at = self.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        document: dict[str, Any] = {
            "eventId": self.event_id,
            "number": self.number,
            "accountUid": account,
            "kind": self.kind,
            "events": self.notifications,
            "time": created_at,
        }
        if self.job_execution_id:
            document["jobExecutionId"] = self.job_execution_id
        return msgspec.json.encode({**document, "data": msgspec.Raw(self.payload.encode())})


@dataclass(frozen=True)
class Answer:
    status: int | None
    error: str | None  # None: delivered


class WebhookSender(Service):
    name = "webhook sender"
    channels = (DELIVERIES,)

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._client = context.targets.webhook_client
        self._account = context.targets.account_uid
        self._private_key = context.targets.private_key
        self._recording = asyncio.Lock()  # one session at a time
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._begun: dict[UUID, float] = {}  # by webhook: when its last attempt began

    @property
    def pause(self) -> timedelta:
        return INTERVAL

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            for task in self._tasks.values():
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks.values())

    async def run_once(self) -> None:
        store = self.context.store
        # Those that are being sent are among the rows.
        async with self._recording, store.calling() as tx:
            rows = await tx.fetch(Q.due_deliveries, store.epoch, 2 * MAX_PARALLEL_OF_WEBHOOK)
        deliveries = [msgspec.convert(dict(row), Delivery) for row in rows]
        # Receivers that hang must not take the places of the others again and again.
        deliveries.sort(key=lambda each: self._begun.get(each.webhook_id, 0.0))
        for delivery in deliveries:
            if self._may_begin(delivery):
                self._begun[delivery.webhook_id] = self.context.clock.monotonic()
                task = asyncio.create_task(self._deliver(delivery))
                self._tasks[delivery.key] = task
                task.add_done_callback(partial(self._on_end, delivery.key))
        self.status = f"sends {len(self._tasks)}" if self._tasks else "idle"

    def _may_begin(self, delivery: Delivery) -> bool:
        of_webhook = sum(webhook == delivery.webhook_id for webhook, _ in self._tasks)
        return (
            delivery.key not in self._tasks
            and len(self._tasks) < MAX_PARALLEL
            and of_webhook < MAX_PARALLEL_OF_WEBHOOK
        )

    def _on_end(self, key: Key, done: "asyncio.Task[None]") -> None:
        del self._tasks[key]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("delivery failed unexpectedly", number=key[1], exc_info=error)
            return  # the next round tries it again
        self._wakeup.set()

    async def _deliver(self, delivery: Delivery) -> None:
        answer = await self._send(delivery)
        await reach("events.delivered")
        pause = next_pause(delivery.attempts + 1, delivery.max_attempts)
        delivered = answer.error is None
        if not delivered:
            log.info(
                "webhook did not accept an event",
                webhook=delivery.name,
                event_id=delivery.event_id,
                why=answer.error,
            )
        store = self.context.store
        # An outage of the control database: the delivery stays due.
        with contextlib.suppress(Fault):
            async with self._recording, store.calling() as tx:
                record = delivered, answer.status, answer.error, None if delivered else pause
                await tx.execute(Q.record_delivery, store.epoch, *delivery.key, *record)
            outcome = DELIVERED if delivered else DEAD_LETTER if pause is None else RETRIED
            self.context.metrics.deliveries[outcome] += 1
            await reach("events.delivery_recorded")

    async def _send(self, delivery: Delivery) -> Answer:
        to = receiver(delivery.url)
        if to is None:
            return Answer(None, "the URL can't be used")
        context = belongs_to_webhook(self._account, delivery.database_id, delivery.name)
        try:
            secret = open_sealed(self._private_key, delivery.secret, context)
        except Fault:
            return Answer(
                None, "the secret was sealed for another account or database; set it again"
            )
        await reach("events.before_delivery")
        body = delivery.body(self._account)
        try:
            status = await self._client.post(to, self._headers(delivery, secret, body), body)
        except DeliveryError as error:
            return Answer(None, str(error))
        return Answer(status, refusal(status))

    def _headers(self, delivery: Delivery, secret: Secret, body: bytes) -> dict[str, str]:
        timestamp = int(self.context.clock.now().timestamp())
        return {
            "Content-Type": "application/json",
            "User-Agent": f"muster/{VERSION}",
            "Muster-Event-Id": str(delivery.event_id),
            "Muster-Attempt": str(delivery.attempts + 1),
            "Muster-Timestamp": str(timestamp),
            "Muster-Signature": sign(secret, timestamp, body),
        }
