"""Carries asyncpg's bytes to one checked address, over TLS if asked, past a guard.

asyncpg has no hook for the address, for the name that TLS verifies, or for the kind of
authentication. It does take an event loop and opens its connections (also the one that cancels a
statement) by `loop.create_connection`. A `Dialer` is that loop: everything goes to the real one,
but a connection is made here, to the pinned address. No name is resolved again, TLS can't be
talked away, and each byte of the server passes the `Guard` before asyncpg sees it. The guard logs in
itself, by SCRAM with channel binding: no server gets a password in clear text or as an MD5 hash, unless
an Owner allowed that for this one.
"""

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

from muster.core.egress import Address
from muster.core.scram_client import ScramClient, ScramError, end_point
from muster.core.weak_login import REQUESTS, WeakLogin

SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)
CANCEL_REQUEST = 80_877_102
FAREWELL = 5.0  # seconds that a server has to hang up on a cancel request
AUTHENTICATION = ord("R")
SIZE = struct.Struct("!I").unpack_from
READY = ord("Z")
KEY = ord("K")  # pid and secret by which a session's statement is cancelled
LONGEST_KEY = 264  # with its size and the pid
HANDSHAKE_LIMIT = 64 * 1024  # bytes that a server may send before it has accepted us
OPENING_LIMIT = 1024 * 1024  # bytes between that and its first readiness for a query
ANSWER_LIMIT = 64 * 1024 * 1024  # bytes of one answer that asyncpg collects
MESSAGE_LIMIT = 32 * 1024 * 1024  # one row, one notice, one error


class Auth(IntEnum):
    """What a server may ask for: the codes of the protocol."""

    OK = 0
    CLEARTEXT = 3
    MD5 = 5
    SASL = 10
    SASL_CONTINUE = 11
    SASL_FINAL = 12


class TlsRefusedError(ConnectionError):
    """The server does not speak TLS; we don't go on without."""


@dataclass(frozen=True)
class Tls:
    context: ssl.SSLContext
    name: str  # what the certificate must be for


class Tap:
    """Receives a server's bytes instead of asyncpg, once the connection is handed over. One object serves one session."""

    dialer: "Dialer | None" = None

    def feed(self, data: bytes) -> None:
        """Bytes of the server; the first ones begin with a message."""

    def lost(self) -> None:
        """The server or we have hung up."""

    def break_off(self, why: str) -> None:
        if self.dialer:
            self.dialer.refusal = why
            self.dialer.hang_up()

    async def cancel(self) -> None:
        """Asks the server to give up the running statement; done when the server took note of it."""
        if self.dialer:
            await self.dialer.cancel()


class Dialer:
    """Give it to asyncpg as `loop=`. After a failure `refusal` may say what the guard saw."""

    def __init__(
        self,
        address: Address,
        port: int,
        tls: Tls | None,
        tap: Tap | None = None,
        *,
        password: str | None = None,
        weak: WeakLogin | None = None,
    ) -> None:
        self.refusal: str | None = None
        self.weak = weak  # None: SCRAM alone
        self.password = password  # None: nothing is answered, the question is passed on
        self.proven = False  # the server wanted to know the password
        self.key = b""
        self.tap = tap
        if tap:
            tap.dialer = self
        self._loop = asyncio.get_running_loop()
        self._address = address
        self._port = port
        self._tls = tls
        self._transports: list[asyncio.BaseTransport] = []

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], *_: object, **__: object
    ) -> tuple[asyncio.BaseTransport, asyncio.Protocol]:
        family = socket.AF_INET if self._address.version == 4 else socket.AF_INET6
        plug = socket.socket(family, socket.SOCK_STREAM)
        try:
            plug.setblocking(False)
            await self._loop.sock_connect(plug, (str(self._address), self._port))
            options: dict[str, Any] = {}
            if self._tls:
                await self._ask_for_tls(plug)
                options = {"ssl": self._tls.context, "server_hostname": self._tls.name}
            transport, guard = await self._loop.create_connection(
                lambda: Guard(factory(), self, self.tap), sock=plug, **options
            )
        except BaseException:
            plug.close()
            raise
        self._transports = [
            *(each for each in self._transports if not each.is_closing()),
            transport,
        ]
        return transport, guard.inner

    def hand_over(self) -> asyncio.Transport:
        """From now on only the tap gets the server's bytes; asyncpg learns only that the connection ended."""
        transport = cast("asyncio.Transport", self._transports[-1])
        if transport.is_closing():
            raise ConnectionError("the server closed the connection")
        cast("Guard", transport.get_protocol()).hand_over()
        return transport

    def hang_up(self) -> None:
        """Ends what is open, also where asyncpg lost track of it."""
        for transport in self._transports:
            cast("asyncio.Transport", transport).abort()

    async def cancel(self) -> None:
        """On a connection of its own, as the protocol wants it; the server hangs up on it."""
        if not self.key:
            return
        transport, farewell = await self.create_connection(_Farewell)
        ours = cast("asyncio.Transport", transport)
        ours.write(struct.pack("!ii", 8 + len(self.key), CANCEL_REQUEST) + self.key)
        try:
            await cast("_Farewell", farewell).gone.wait()
        finally:
            # The client does not close first, as libpq does not: PgBouncer was seen to die after that.
            self._loop.call_later(0 if ours.is_closing() else FAREWELL, ours.abort)

    async def _ask_for_tls(self, plug: socket.socket) -> None:
        """One byte is read and no more: what follows belongs to TLS or is refused by it."""
        await self._loop.sock_sendall(plug, SSL_REQUEST)
        if await self._loop.sock_recv(plug, 1) != b"S":
            raise TlsRefusedError("the server does not offer TLS")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    # asyncio keeps its current task by loop, and asyncpg asks for it with this one.
    def __eq__(self, other: object) -> bool:
        return other is self or other is self._loop

    def __hash__(self) -> int:
        return hash(self._loop)


class Guard(asyncio.Protocol):
    """Logs in by SCRAM, refuses every other question for the password, and caps what a server may send."""

    def __init__(self, inner: asyncio.Protocol, dialer: Dialer, tap: Tap | None = None) -> None:
        self.inner = inner
        self._dialer = dialer
        self._transport: asyncio.Transport | None = None
        self._accepted = False
        self._held = b""  # an incomplete message of the handshake, or an incomplete header later
        self._heard = 0
        self._skip = 0  # what is left of a message whose header was seen
        self._unread = OPENING_LIMIT  # bytes that may come before the server is ready again
        self._tap = tap
        self._handed_over = False
        self._scram: ScramClient | None = None

    def hand_over(self) -> None:
        if self._held or self._skip:
            raise ConnectionError("the server sent data that was not asked for")
        self._handed_over = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.inner.connection_lost(exc)
        if self._handed_over and self._tap:
            self._tap.lost()

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._dialer.refusal:
            return
        if self._handed_over and self._tap:
            self._tap.feed(data)
        elif not self._accepted:
            self._shake_hands(data)
        elif self._fits(data):
            self.inner.data_received(data)

    def _shake_hands(self, data: bytes) -> None:
        """A message is answered at once, so it is passed on only whole and after it was judged."""
        self._heard += len(data)
        if self._heard > HANDSHAKE_LIMIT:
            self._refuse("it sent too much before it accepted the login")
            return
        self._held += data
        while not self._accepted and (size := _size(self._held)):
            if size < 5:
                self._refuse("it does not speak PostgreSQL's protocol")
                return
            if len(self._held) < size:
                return
            message, self._held = self._held[:size], self._held[size:]
            if message[0] != AUTHENTICATION:
                self.inner.data_received(message)
                continue
            try:
                self._authenticate(message)
            except ScramError as error:
                self._refuse(str(error))
                return
        if self._accepted and self._held:
            rest, self._held = self._held, b""
            self.data_received(rest)

    def _authenticate(self, message: bytes) -> None:
        """Passes the acceptance alone to asyncpg; what is refused is a ScramError."""
        kind, rest = int.from_bytes(message[5:9], "big"), message[9:]
        match kind:
            case Auth.OK:
                if self._scram and not self._scram.proven:
                    raise ScramError("it could not prove that it knows the password")
                self._accepted = True
                self.inner.data_received(message)
            case _ if self._dialer.password is None:
                self.inner.data_received(message)
            case Auth.CLEARTEXT | Auth.MD5:
                self._log_in_weakly(kind, rest)
            case Auth.SASL if self._scram is None:
                self._dialer.proven = True
                names = [name.decode(errors="replace") for name in rest.split(b"\0") if name]
                self._scram = ScramClient(self._dialer.password or "", names, self._binding())
                first, mechanism = self._scram.first(), self._scram.mechanism.encode()
                self._answer(mechanism + b"\0" + struct.pack("!i", len(first)) + first)
            case Auth.SASL_CONTINUE if self._scram:
                self._answer(self._scram.final(rest))
            case Auth.SASL_FINAL if self._scram:
                self._scram.verify(rest)
            case Auth.SASL | Auth.SASL_CONTINUE | Auth.SASL_FINAL:
                raise ScramError("it does not support SCRAM")
            case _:
                raise ScramError(
                    f"it asked for an authentication that Muster does not support ({kind})"
                )

    def _log_in_weakly(self, kind: int, salt: bytes) -> None:
        weak = self._dialer.weak
        answer = weak.answer(kind, salt) if weak and not self._dialer.proven else None
        if answer is None:
            word = "in clear text" if kind == Auth.CLEARTEXT else "as an MD5 hash"
            raise ScramError(
                f"it asked for the password {word}; set scram-sha-256 in its pg_hba.conf and give "
                "the role its password again with password_encryption = 'scram-sha-256', or let an Owner of "
                f"the server set its endpoint.authentication to {REQUESTS[kind]}"
            )
        self._dialer.proven = True
        self._answer(answer)

    def _binding(self) -> bytes | None:
        assert self._transport is not None
        return end_point(self._transport.get_extra_info("ssl_object"))

    def _answer(self, body: bytes) -> None:
        assert self._transport is not None
        self._transport.write(b"p" + struct.pack("!i", len(body) + 4) + body)

    def _fits(self, data: bytes) -> bool:
        """Reads headers only: no message is larger than the limit, nor are all of them together in one answer."""
        at, data = self._skip, self._held + data
        end = len(data)
        self._unread -= end - len(self._held)
        while at + 5 <= end:
            (size,) = SIZE(data, at + 1)
            if not 4 <= size <= MESSAGE_LIMIT:
                self._refuse(f"it sent a message of more than {MESSAGE_LIMIT >> 20} MB")
                return False
            if data[at] == KEY and size <= LONGEST_KEY:
                if at + 1 + size > end:
                    break  # it is held until it is whole
                self._dialer.key = data[at + 5 : at + 1 + size]
            elif data[at] == READY:
                self._unread = ANSWER_LIMIT
            at += 1 + size
        if self._unread < 0:
            self._refuse("it sent more than was asked for")
            return False
        self._held, self._skip = (data[at:], 0) if at < end else (b"", at - end)
        return True

    def _refuse(self, why: str) -> None:
        self._dialer.refusal = why
        if self._transport:
            self._transport.abort()


class _Farewell(asyncio.Protocol):
    """Nothing is said here; it knows when the other side has hung up."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - either is fine
        self.gone.set()


def _size(held: bytes) -> int:
    """Of the first message with its header; 0 while it is not known."""
    return 1 + int.from_bytes(held[1:5], "big") if len(held) >= 5 else 0
