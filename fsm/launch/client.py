"""How a process speaks for its workload: one that is refused, or unheard for too long, must stop.

    async with Session(read_start(path)) as session:
        await session.running({"version": VERSION})
        await work(until=session.lost)
        await session.success({"rows": 3})

`lost` is set when the Workload API refuses the workload, or gave no answer for longer than its
patience, counted from when the last answered call was sent: by then others may act in our place.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from fsm.launch import protocol
from fsm.launch.protocol import BASE, Reason, Start
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.egress import Addresses
from muster.core.errors import Conflict, InvalidRequest, Unavailable

log = telemetry.get(__name__)

REFUSED = frozenset({401, 403, 404, 410})  # ended, replaced, or never known: all mean stop
AGAIN = frozenset({408, 429})
CALL_LIMIT = 10.0  # seconds; never longer than the patience
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between tries of one call


def read_start(path: Path) -> Start:
    return msgspec.json.decode(path.read_bytes(), type=Start)


class Refused(Conflict):
    """The control plane does not want this workload any more."""

    default_code = "WorkloadGone"


class Session:
    def __init__(
        self,
        start: Start,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.start = start
        self.lost = asyncio.Event()
        self.why = ""  # of the loss
        self._clock = clock or Clock()
        # Called with the current ones after each heartbeat; None: this workload connects to no target.
        self.on_addresses: Callable[[Addresses], None] | None = None
        self._report: Callable[[], Mapping[str, Any] | None] = lambda: None
        self._beating: asyncio.Task[None] | None = None
        self._heard = self._clock.monotonic()
        self._http = httpx.AsyncClient(
            base_url=start.url + BASE,
            headers={"authorization": f"Bearer {start.token}"},
            timeout=min(CALL_LIMIT, start.patience),
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._rest()
        await self._http.aclose()

    async def running(self, report: Mapping[str, Any] | None = None) -> None:
        """Tries until the API answers; then heartbeats go by themselves. Refused or Unavailable: stop."""
        await self._insist("running", report=report)
        with suppress(Unavailable):  # then those of the start file hold until the first heartbeat
            await self._renew_addresses()
        self._beating = asyncio.create_task(self._beat())

    def tell(self, report: Callable[[], Mapping[str, Any] | None]) -> None:
        """Asked before each heartbeat what to say about ourselves; None says nothing new."""
        self._report = report

    async def success(self, result: Mapping[str, Any] | None = None) -> None:
        await self._rest()
        await self._insist("success", result=result)

    async def failure(self, message: str, reason: Reason = Reason.REPORTED) -> None:
        await self._rest()
        await self._insist("failure", message=message, reason=reason)

    async def create(self, new: protocol.Create) -> None:
        """An engine wants a command to be run for its account; the same id again is no second one."""
        await self._send("POST", "create", msgspec.json.encode(new))

    async def addresses(self) -> Addresses:
        """Which the control plane opens and denies to the account, as of now."""
        answer = await self._send("GET", "addresses")
        try:
            return msgspec.json.decode(answer.content, type=Addresses)
        except msgspec.DecodeError as error:
            raise Unavailable("The Workload API can't be understood.", context=str(error)) from None

    async def get(self) -> protocol.Shown:
        answer = await self._send("GET", str(self.start.id))
        return msgspec.json.decode(answer.content, type=protocol.Shown)

    async def _beat(self) -> None:
        pause = timedelta(seconds=self.start.heartbeat)
        while not self.lost.is_set():
            await self._clock.sleep_or(self.lost, pause)
            # What goes wrong is in `lost`, or will be: the next round comes soon enough.
            with suppress(Refused, Unavailable, InvalidRequest):
                await self._call("heartbeat", report=self._report())
                await self._renew_addresses()

    async def _renew_addresses(self) -> None:
        if self.on_addresses is not None:
            self.on_addresses(await self.addresses())

    async def _rest(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with suppress(asyncio.CancelledError):
                await self._beating
            self._beating = None

    async def _insist(self, path: str, **fields: Any) -> None:
        """Again and again while there is no answer; ends with `lost` at the latest."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._call(path, **fields)
            except Unavailable:
                if self.lost.is_set():
                    raise
            jitter = random.uniform(0.75, 1.25)  # noqa: S311 - spreads load, hides nothing
            await self._clock.sleep(timedelta(seconds=pause * jitter))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _call(self, path: str, **fields: Any) -> None:
        body = {"workloadId": self.start.id, **{k: v for k, v in fields.items() if v is not None}}
        await self._send("PUT", path, msgspec.json.encode(body))

    async def _send(self, method: str, path: str, body: bytes | None = None) -> httpx.Response:
        sent = self._clock.monotonic()
        try:
            answer = await self._http.request(method, f"/{path}", content=body)
        except httpx.TransportError as error:
            raise self._unheard(path, type(error).__name__) from None
        if answer.status_code in REFUSED:
            self._lose(f"{path} was answered with {answer.status_code}")
            raise Refused(_message(answer))
        if answer.is_server_error or answer.status_code in AGAIN:
            raise self._unheard(path, str(answer.status_code))
        self._heard = sent
        if answer.is_error:
            raise InvalidRequest(_message(answer))
        return answer

    def _unheard(self, path: str, why: str) -> Unavailable:
        if self._clock.monotonic() - self._heard > self.start.patience:
            self._lose(f"no answer for {self.start.patience:g} s")
        return Unavailable("The Workload API gives no answer.", context=f"{path}: {why}")

    def _lose(self, why: str) -> None:
        if not self.lost.is_set():
            self.why = why
            log.warning("this workload must stop", workload=self.start.id, why=why)
            self.lost.set()


def _message(answer: httpx.Response) -> str:
    try:
        return msgspec.json.decode(answer.content, type=protocol.Error).message
    except msgspec.DecodeError:
        return f"The Workload API refused with {answer.status_code}."
