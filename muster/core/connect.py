"""The only opener of connections to users' servers.

    connector = Connector(settings, own_servers)   # own_servers: embedded (host, port) pairs, or
                                                   # an async function that returns them
    async with connector.session(endpoint, user=…, password=…, application_name=…) as connection: …
    connection = await connector.open(endpoint, …)   # the caller closes it
    await connector.contact(endpoint)                # whether a PostgreSQL answers; nobody logs in
    errors = check_endpoint(endpoint, rules)         # at write time: every field error at once

Names are resolved for each connect, all answers are checked (egress.py), the connection goes to a
checked address and nowhere else while TLS verifies the name (wire.py). Every value is a keyword
argument, so no PG* variable, password file or service file has a say. Failures are Faults:
TargetNotAllowed, TargetTlsError, TargetAuthenticationFailed, ConnectNotGranted,
TargetDatabaseNotFound, and as Unavailable TargetUnreachable, TargetTimeout. They have the server's
SQLSTATE and words where it gave any. None of them holds a secret.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar, cast

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from muster.core import egress, startup
from muster.core.db import Connection
from muster.core.egress import Address, Pair, Rules, check_address, check_host_syntax
from muster.core.endpoint import Endpoint, check_endpoint, tls_context
from muster.core.errors import Fault, Unavailable
from muster.core.refusals import (
    Login,
    as_fault,
    not_allowed,
    not_proven,
    printable,
    timed_out,
    unreachable,
)
from muster.core.session_settings import OWN_PATH
from muster.core.session_settings import startup as startup_settings
from muster.core.settings import Secret, Settings
from muster.core.startup import Startup
from muster.core.wire import Dialer, Tap, Tls

__all__ = ["Connector", "Endpoint", "Rules", "check_address", "check_endpoint", "check_host_syntax"]

SHUT = "57P"  # SQLSTATEs of a server that starts or stops
CLOSE_LIMIT = 2.0  # seconds; a server that does not say good-bye is hung up on

OwnServers = Callable[[], Awaitable[AbstractSet[Pair]]] | AbstractSet[Pair]
T = TypeVar("T")
Resolve = Callable[[str, int], Awaitable[list[Address]]]


class Connector:
    def __init__(
        self,
        settings: Settings,
        own_servers: OwnServers = frozenset(),
        *,
        resolve: Resolve | None = None,
    ) -> None:
        self._settings = settings
        self._own_servers = own_servers
        self._resolve = resolve or resolve_name
        self._rules = Rules.of(settings)

    @contextlib.asynccontextmanager
    async def session(
        self,
        endpoint: Endpoint,
        *,
        user: str,
        password: str | Secret,
        application_name: str,
        database: str | None = None,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - the limit of connecting, not of the body
    ) -> AsyncIterator[Connection]:
        connection = await self.open(
            endpoint,
            user=user,
            password=password,
            application_name=application_name,
            database=database,
            timeout=timeout,
        )
        try:
            yield connection
        finally:
            await close(connection)

    async def open(
        self,
        endpoint: Endpoint,
        *,
        user: str,
        password: str | Secret,
        application_name: str,
        database: str | None = None,
        timeout: timedelta | None = None,  # noqa: ASYNC109 - shared out over the candidates below
        tap: Tap | None = None,
        proven: bool = False,
        search_path: str = OWN_PATH,
    ) -> Connection:
        """`proven`: a client certificate is no login; the server must have asked for the password as well."""
        limit = (timeout or self._settings.connect_limit).total_seconds()
        login = Login(
            user,
            password.reveal() if isinstance(password, Secret) else password,
            database or endpoint.maintenance_database,
            application_name,
        )
        wanted = endpoint.target_session_attrs
        rounds = ["standby", "any"] if wanted == "prefer-standby" else [wanted]

        def connect(host: str, address: Address, attribute: str) -> Awaitable[Connection]:
            return _connect(
                endpoint, host, address, attribute, login, tap, proven=proven, path=search_path
            )

        return await self._first(endpoint, limit, rounds, connect)

    async def contact(self, endpoint: Endpoint) -> None:
        """Up to the point where the server asks for a login: TCP, TLS, startup. A Fault says why not."""

        def connect(host: str, address: Address, _: str) -> Awaitable[None]:
            return _contact(endpoint, host, address)

        limit = self._settings.connect_limit.total_seconds()
        await self._first(endpoint, limit, ["any"], connect)

    async def _first(
        self,
        endpoint: Endpoint,
        limit: float,
        rounds: list[str],
        connect: Callable[[str, Address, str], Awaitable[T]],
    ) -> T:
        """What the first of the endpoint's addresses that answers gives."""
        deadline = asyncio.get_running_loop().time() + limit
        candidates = [candidate async for candidate in self._candidates(endpoint, limit)]
        last: Fault | None = None
        for attribute in rounds:
            for left, (host, address) in zip(
                range(len(candidates), 0, -1), candidates, strict=True
            ):
                share = (deadline - asyncio.get_running_loop().time()) / left
                try:
                    async with asyncio.timeout(max(share, 0.01)):
                        return await connect(host, address, attribute)
                except TimeoutError:
                    last = timed_out(host)
                except Unavailable as fault:
                    last = fault  # another host may do
        raise last or Unavailable("The endpoint names no server.", code="TargetUnreachable")

    async def _candidates(
        self, endpoint: Endpoint, limit: float
    ) -> AsyncIterator[tuple[str, Address]]:
        """Every address of every host; one that is not allowed refuses them all."""
        rules = await self._current_rules()
        unknown: Fault | None = None
        some = False
        for host in endpoint.names:
            try:
                found = await self._addresses(host, endpoint.port, limit)
            except Unavailable as fault:
                unknown = fault
                continue
            for address in found:
                if why := check_address(address, endpoint.port, rules, host=host):
                    raise not_allowed(host, why)
            if await self._is_own(found, endpoint.port):
                raise not_allowed(host, egress.OWN)
            for address in found:
                some = True
                yield host, address
        if unknown and not some:
            raise unknown

    async def _current_rules(self) -> Rules:
        own = self._own_servers
        pairs = await own() if callable(own) else own
        return replace(self._rules, extra=frozenset(pairs))

    async def _addresses(self, host: str, port: int, limit: float) -> list[Address]:
        wrong = check_host_syntax(host, port, await self._current_rules())
        if literal := egress.address_of(host):
            return [literal]
        if wrong:
            raise not_allowed(host, wrong[0].message)
        try:
            async with asyncio.timeout(limit):
                found = await self._resolve(host, port)
        except TimeoutError:
            raise timed_out(host) from None
        except OSError as error:
            context = printable(f"{type(error).__name__} {error}")
            raise unreachable(host, "its name can't be resolved", context=context) from None
        if not found:
            raise unreachable(host, "its name has no address")
        return found

    async def _is_own(self, addresses: list[Address], port: int) -> bool:
        """One of them is where our metadata database or Redis listens, by whatever name."""
        for host, own_port in self._rules.own:
            if own_port != port:
                continue
            literal = egress.address_of(host)
            try:
                ours = [literal] if literal else await self._resolve(host, port)
            except OSError:
                continue
            here = any(found.is_loopback for found in ours)
            if any(found in ours or (here and _is_local(found)) for found in addresses):
                return True
        return False


async def resolve_name(host: str, port: int) -> list[Address]:
    loop = asyncio.get_running_loop()
    answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ipaddress.ip_address(answer[4][0]) for answer in answers))


async def close(connection: Connection) -> None:
    """Always ends: politely within the limit, or by hanging up."""
    try:
        await connection.close(timeout=CLOSE_LIMIT)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()


async def _connect(
    endpoint: Endpoint,
    host: str,
    address: Address,
    attribute: str,
    login: Login,
    tap: Tap | None,
    *,
    proven: bool,
    path: str,
) -> Connection:
    context = tls_context(endpoint)
    tls = Tls(context, host) if context else None
    dialer = Dialer(address, endpoint.port, tls, tap, password=login.password)
    with as_fault(host, login, dialer), _hung_up_unless_done(dialer):
        connection = await asyncpg.connect(
            host=str(address),
            port=endpoint.port,
            user=login.user,
            password=login.password,
            database=login.database,
            server_settings={
                "application_name": login.application_name,
                **(startup_settings(path) if endpoint.pooling == "none" else {}),
            },
            statement_cache_size=0 if endpoint.pooling == "transaction" else 100,
            target_session_attrs=SessionAttribute(attribute),
            loop=cast("asyncio.AbstractEventLoop", dialer),
            # TLS is the dialer's business. What stands here keeps asyncpg from its environment.
            ssl=False,
            direct_tls=False,
            krbsrvname="postgres",
            gsslib="gssapi",
        )
        if proven and endpoint.client_key is not None and not dialer.proven:
            raise not_proven(host, login.user)
        return connection


async def _contact(endpoint: Endpoint, host: str, address: Address) -> None:
    context = tls_context(endpoint)
    dialer = Dialer(address, endpoint.port, Tls(context, host) if context else None)
    nobody = Login(startup.USER, "", endpoint.maintenance_database, "")
    try:
        with as_fault(host, nobody, dialer):
            _, server = await dialer.create_connection(lambda: Startup(nobody.database))
            sqlstate = await cast("Startup", server).answer()
    finally:
        dialer.hang_up()
    if sqlstate and sqlstate.startswith(SHUT):
        raise unreachable(host, f"it accepts no connections now ({printable(sqlstate)})")


@contextlib.contextmanager
def _hung_up_unless_done(dialer: Dialer) -> Iterator[None]:
    try:
        yield
    except BaseException:
        dialer.hang_up()
        raise


def _is_local(address: Address) -> bool:
    """This machine has that address: only then can it be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
        return True
