"""The only opener of connections to users' servers.

    connector = Connector(settings, source)        # source: the addresses that the control plane decides on
    async with connector.session(endpoint, user=…, password=…, application_name=…) as connection: …
    connection = await connector.open(endpoint, …)   # the caller closes it
    await connector.contact(endpoint)                # whether a PostgreSQL answers; without a login
    errors = check_endpoint(endpoint, rules)         # at write time: every field error at once

A refusal is given only by the newest addresses of the source: an embedded server may have been made a
moment ago. Names are resolved for each connect, all answers are checked (egress.py), the connection goes to a
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
from datetime import timedelta
from typing import TypeVar, cast

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from muster.core import egress, startup
from muster.core.address_source import NONE, Source
from muster.core.connect_errors import (
    Login,
    as_fault,
    not_allowed,
    not_proven,
    printable,
    timed_out,
    unreachable,
)
from muster.core.db import Connection
from muster.core.egress import Address, Rules, check_address, check_host_syntax
from muster.core.endpoint import Endpoint, check_endpoint, operators_ca, tls_context
from muster.core.errors import Fault, InvalidRequest, Unavailable
from muster.core.pinned_transport import Dialer, Tap, Tls
from muster.core.session_settings import OWN_PATH
from muster.core.session_settings import startup as startup_settings
from muster.core.settings import Secret, Settings
from muster.core.startup import Startup
from muster.core.weak_login import WeakLogin

__all__ = ["Connector", "Endpoint", "Rules", "check_address", "check_endpoint", "check_host_syntax"]

SHUT = "57P"  # SQLSTATEs of a server that starts or stops
CLOSE_LIMIT = 2.0  # seconds; a server that does not say good-bye is hung up on

RESOLVED = 30.0  # seconds that the addresses of our own names are kept
T = TypeVar("T")
Resolve = Callable[[str, int], Awaitable[list[Address]]]


class Connector:
    def __init__(
        self,
        settings: Settings,
        source: Source = NONE,
        *,
        resolve: Resolve | None = None,
        authority: str | None = None,
    ) -> None:
        """`authority` is the operator's CA in PEM form, where the settings name no file that has it."""
        self.authority = authority or operators_ca(settings)
        self._settings = settings
        self._source = source
        self._resolve = resolve or resolve_name
        self._rules = Rules.of(settings)
        self._resolved: dict[str, tuple[float, list[Address]]] = {}

    @property
    def limit(self) -> timedelta:
        """Of one attempt to connect."""
        return self._settings.connect_limit

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
        addresses = await self._source.current()
        wanted = endpoint.target_session_attrs
        rounds = ["standby", "any"] if wanted == "prefer-standby" else [wanted]

        def connect(host: str, address: Address, attribute: str) -> Awaitable[Connection]:
            method = endpoint.login_method(host, addresses)
            weak = WeakLogin(method, login.user, login.password)
            tls = _tls(endpoint, host, self.authority)
            return _connect(
                endpoint,
                tls,
                host,
                address,
                attribute,
                login,
                tap,
                weak,
                proven=proven,
                path=search_path,
            )

        return await self._first(endpoint, limit, rounds, connect)

    async def contact(self, endpoint: Endpoint) -> None:
        """Up to the point where the server asks for a login: TCP, TLS, startup. A Fault says why not."""

        def connect(host: str, address: Address, _: str) -> Awaitable[None]:
            return _contact(endpoint, _tls(endpoint, host, self.authority), host, address)

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
        candidates = await self.candidates(endpoint, limit)
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

    async def candidates(self, endpoint: Endpoint, limit: float) -> list[tuple[str, Address]]:
        """Every address of every host; one that is not allowed refuses them all."""
        current = await self._source.current()
        try:
            return await self._checked(endpoint, limit, self._rules.at(current))
        except InvalidRequest:
            newest = await self._source.newest()
            if newest == current:
                raise
        return await self._checked(endpoint, limit, self._rules.at(newest))

    async def _checked(
        self, endpoint: Endpoint, limit: float, rules: Rules
    ) -> list[tuple[str, Address]]:
        unknown: Fault | None = None
        candidates = []
        for host in endpoint.names:
            try:
                addresses = await self._addresses(host, endpoint.port, limit, rules)
            except Unavailable as fault:
                unknown = fault
                continue
            for address in addresses:
                if why := check_address(address, endpoint.port, rules, host=host):
                    raise not_allowed(host, why)
            if await self._is_own(addresses, endpoint.port, rules):
                raise not_allowed(host, egress.OWN)
            candidates += [(host, address) for address in addresses]
        if unknown and not candidates:
            raise unknown
        return candidates

    async def _addresses(self, host: str, port: int, limit: float, rules: Rules) -> list[Address]:
        wrong = check_host_syntax(host, port, rules)
        if literal := egress.address_of(host):
            return [literal]
        if wrong:
            raise not_allowed(host, wrong[0].message)
        try:
            async with asyncio.timeout(limit):
                addresses = await self._resolve(host, port)
        except TimeoutError:
            raise timed_out(host) from None
        except OSError as error:
            context = printable(f"{type(error).__name__} {error}")
            raise unreachable(host, "its name can't be resolved", context=context) from None
        if not addresses:
            raise unreachable(host, "its name has no address")
        return addresses

    async def _is_own(self, addresses: list[Address], port: int, rules: Rules) -> bool:
        """One of them is where the control plane itself listens, under any name."""
        found_at = [egress.real(address) for address in addresses]
        for host, own_port in rules.own:
            if own_port != port:
                continue
            ours = await self._own_addresses(host, port)
            here = any(own.is_unspecified or _is_local(own) for own in ours)
            if any(own in ours or (here and _is_local(own)) for own in found_at):
                return True
        return False

    async def _own_addresses(self, host: str, port: int) -> list[Address]:
        if literal := egress.address_of(host):
            return [literal]
        now = asyncio.get_running_loop().time()
        at, cached = self._resolved.get(host, (0.0, None))
        if cached is None or now - at > RESOLVED:
            try:
                cached = await self._resolve(host, port)
            except OSError:
                cached = cached or []
            self._resolved[host] = now, cached
        return cached


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


def _tls(endpoint: Endpoint, host: str, authority: str | None) -> Tls | None:
    context = tls_context(endpoint, authority)
    return Tls(context, host) if context else None


async def _connect(
    endpoint: Endpoint,
    tls: Tls | None,
    host: str,
    address: Address,
    attribute: str,
    login: Login,
    tap: Tap | None,
    weak: WeakLogin,
    *,
    proven: bool,
    path: str,
) -> Connection:
    dialer = Dialer(address, endpoint.port, tls, tap, password=login.password, weak=weak)
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


async def _contact(endpoint: Endpoint, tls: Tls | None, host: str, address: Address) -> None:
    dialer = Dialer(address, endpoint.port, tls)
    anonymous = Login(startup.USER, "", endpoint.maintenance_database, "")
    try:
        with as_fault(host, anonymous, dialer):
            _, server = await dialer.create_connection(lambda: Startup(anonymous.database))
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
