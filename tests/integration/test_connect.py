"""The connector against a real PostgreSQL behind real TLS, and against servers that lie."""

import asyncio
import contextlib
import datetime
import ipaddress
import os
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import trustme
import uvloop

from engine.pool.server_pool import ServerPool, Key
from engine.process.egress import Egress
from engine.pgwire.results import ResultReader
from engine.pool.pooled_connection import PooledConnection
from engine.model.server import TargetServer
from muster.core import scram_client
from muster.core.connect import Connector, Endpoint, close
from muster.core.egress import Address, Addresses
from muster.core.errors import Fault, InvalidRequest, NotFound, Unavailable
from muster.core.settings import Secret, Settings
from tests.support.postgres import Postgres
from tests.support.refusing import refusing

NAME = "db.example.com"
PASSWORD = "canary-0f6c2b"
LOOPBACK = ipaddress.ip_address("127.0.0.1")
STARTUP, SSL_REQUEST = 196_608, 80_877_103
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def settings(**more: Any) -> Settings:
    values = {
        "database_url": Secret("postgresql://u:p@10.255.0.1:5432/m"),
        "target_allow": ("127.0.0.0/8",),
        "connect_limit": datetime.timedelta(seconds=5),
    }
    return Settings(**(values | more))


@dataclass
class Names:
    """A name server of our own; each lookup takes the next answer, the last one stays."""

    answers: list[list[str]] = field(default_factory=lambda: [["127.0.0.1"]])
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.asked.append(host)
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return [ipaddress.ip_address(text) for text in answer]


@contextlib.asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    """A server on loopback that says what `talk` says."""

    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            with contextlib.suppress(Exception):
                writer.close()
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        if tasks:
            await asyncio.wait(tasks, timeout=0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class Front:
    """Terminates TLS as PostgreSQL does and hands the rest to a real server (the wheel's has no TLS)."""

    behind: Postgres
    context: ssl.SSLContext
    secured: int = 0
    packets: list[int] = field(default_factory=list)  # the code of each first message inside TLS

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert struct.unpack("!ii", await reader.readexactly(8)) == (8, SSL_REQUEST)
        writer.write(b"S")
        await writer.start_tls(self.context)
        self.secured += 1
        head = await reader.readexactly(8)
        self.packets.append(struct.unpack("!ii", head)[1])
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.behind.port)
        inner_writer.write(head)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, inner_writer))
                group.create_task(pump(inner_reader, writer))
        except* ConnectionError:
            pass
        finally:
            inner_writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_context(authority: trustme.CA, name: str = NAME, **options: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **options).configure_cert(context)
    return context


def endpoint(port: int, authority: trustme.CA | None = None, **more: Any) -> Endpoint:
    pem = authority.cert_pem.bytes().decode() if authority else None
    return Endpoint(**({"host": NAME, "port": port, "ca_certificate": pem} | more))


async def opened(postgres: Postgres, where: Endpoint, **more: Any) -> asyncpg.Connection:
    options = {"user": postgres.administrator.name, "password": postgres.administrator.password}
    connector = more.pop("connector", None) or Connector(settings(), resolve=Names())
    return await connector.open(where, application_name="muster/test", **(options | more))


async def refused(where: Endpoint, connector: Connector | None = None, **login: Any) -> Fault:
    connector = connector or Connector(settings(), resolve=Names())
    options = {"user": "somebody", "password": PASSWORD, "application_name": "muster/test"}
    with pytest.raises(Fault) as caught:
        await connector.open(where, **(options | login))
    fault = caught.value
    told = f"{fault.message}{fault.detail}{fault.context}{fault!r}{fault.__cause__!r}"
    assert PASSWORD not in told
    return fault


# TLS


async def test_the_name_is_verified_while_the_connection_goes_to_the_checked_address(
    postgres: Postgres, authority: trustme.CA
) -> None:
    front = Front(postgres, server_context(authority))
    async with listening(front) as port:
        connection = await opened(postgres, endpoint(port, authority))
        with pytest.raises(TimeoutError):
            await connection.execute("select pg_sleep(30)", timeout=0.1)

        assert await connection.fetchval("show application_name") == "muster/test"
        await connection.close()

    assert front.packets == [STARTUP, 80_877_102]  # the cancel request took the same road


async def test_the_operator_s_ca_verifies_servers_that_name_none(
    postgres: Postgres, authority: trustme.CA, tmp_path: Path
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(b"# of our own: \xfc\n" + authority.cert_pem.bytes())
    ours = Connector(settings(target_ca_file=bundle), resolve=Names())
    async with listening(Front(postgres, server_context(authority))) as port:
        connection = await opened(postgres, endpoint(port), connector=ours)
        await connection.close()
        without = await refused(endpoint(port))
        another = await refused(endpoint(port, trustme.CA()), ours)

    assert (without.code, another.code) == ("TargetTlsError", "TargetTlsError")


def test_it_works_on_uvloop_too(postgres: Postgres, authority: trustme.CA) -> None:
    async def visit() -> None:
        front = Front(postgres, server_context(authority))
        async with listening(front) as port:
            connection = await opened(postgres, endpoint(port, authority))
            with pytest.raises(TimeoutError):
                await connection.execute("select pg_sleep(30)", timeout=0.1)
            assert await connection.fetchval("select count(*) from generate_series(1, 10)") == 10
            await connection.close()
            fault = await refused(endpoint(port, trustme.CA()))
            assert fault.code == "TargetTlsError"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(visit())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_session_that_speaks_by_itself_does_so_over_tls(
    postgres: Postgres, authority: trustme.CA, loop: Any
) -> None:
    async def visit() -> None:
        front, reader = Front(postgres, server_context(authority)), ResultReader()
        async with listening(front) as port:
            connection = await opened(postgres, endpoint(port, authority), tap=reader)
            server = TargetServer(
                server_id="s", name="s", hosts=(NAME,), port=port, ssl_mode="require"
            )
            server_pool = ServerPool(server)
            session = PooledConnection(
                server_pool, Key("postgres", UUID(int=1), 1, "u", 0), connection, reader
            )
            session.take_over()
            [long, short] = await session.query("select repeat('x', 300000); select 2")
            assert len(long.rows[0][0]) == 300_000
            assert short.rows == [[2]]
            with pytest.raises(asyncpg.DivisionByZeroError):
                await session.query("select 1/0")
            asking = asyncio.create_task(session.query("select pg_sleep(30)"))
            await asyncio.sleep(0.1)
            await reader.cancel()
            with pytest.raises(asyncpg.QueryCanceledError):
                await asking
            await close(connection)
            assert session.lost

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(visit())


async def test_who_breaks_a_cancel_off_leaves_hanging_up_to_the_server(postgres: Postgres) -> None:
    ends: list[str] = []

    async def pooler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(16)
        try:
            async with asyncio.timeout(0.3):
                await reader.read(1)
            ends.append("the client hung up")
        except TimeoutError:
            ends.append("we may hang up")
        writer.close()

    reader = ResultReader()
    connection = await opened(postgres, endpoint(postgres.port, ssl_mode="disable"), tap=reader)
    async with await asyncio.start_server(pooler, "127.0.0.1", 0) as server:
        dialer = reader.dialer
        dialer._port = server.sockets[0].getsockname()[1]
        canceling = asyncio.create_task(reader.cancel())
        await asyncio.sleep(0.1)
        canceling.cancel()
        await asyncio.wait({canceling})
        async with asyncio.timeout(5):
            while not ends:
                await asyncio.sleep(0.01)
    await close(connection)

    assert ends == ["we may hang up"]


@pytest.mark.parametrize(
    "flaw", ["other name", "unknown authority", "system authorities", "expired"]
)
async def test_a_certificate_that_is_not_the_servers_ends_it_before_the_login(
    postgres: Postgres, authority: trustme.CA, flaw: str
) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    context = {
        "other name": lambda: server_context(authority, "other.example.com"),
        "expired": lambda: server_context(authority, not_after=past),
    }.get(flaw, lambda: server_context(authority))()
    trusted = {"unknown authority": trustme.CA(), "system authorities": None}.get(flaw, authority)
    front = Front(postgres, context)
    async with listening(front) as port:
        fault = await refused(endpoint(port, trusted))

    assert (type(fault), fault.code) == (InvalidRequest, "TargetTlsError")
    assert front.packets == []


async def test_require_encrypts_and_asks_nobody(postgres: Postgres, authority: trustme.CA) -> None:
    front = Front(postgres, server_context(authority, "other.example.com"))
    async with listening(front) as port:
        connection = await opened(postgres, endpoint(port, ssl_mode="require"))
        await connection.close()

    assert front.secured == 1


async def test_a_client_certificate_is_shown(postgres: Postgres, authority: trustme.CA) -> None:
    pair = authority.issue_cert("client.example.com")
    context = server_context(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    chain = b"".join(blob.bytes() for blob in pair.cert_chain_pems).decode()
    key = pair.private_key_pem.bytes().decode()
    async with listening(Front(postgres, context)) as port:
        with_key = endpoint(port, authority, client_certificate=chain, client_key=key)
        connection = await opened(postgres, with_key)
        await connection.close()

        fault = await refused(endpoint(port, authority))

    assert fault.code in {"TargetTlsError", "TargetUnreachable"}


@pytest.mark.parametrize("mode", ["verify-full", "require"])
async def test_tls_cannot_be_talked_away(mode: str) -> None:
    heard = b""

    async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        writer.write(b"N")
        while data := await reader.read(1000):
            heard += data

    async with listening(no_tls) as port:
        fault = await refused(endpoint(port, ssl_mode=mode))

    assert fault.code == "TargetTlsError"
    assert heard == struct.pack("!ii", 8, SSL_REQUEST)


async def test_bytes_smuggled_behind_the_answer_are_not_believed() -> None:
    async def smuggler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"S" + b"R\0\0\0\x08\0\0\0\0")
        await reader.read()

    async with listening(smuggler) as port:
        fault = await refused(endpoint(port, ssl_mode="require"))

    assert fault.code == "TargetTlsError"


# Servers that lie


def asks_for_cleartext(heard: list[bytes]) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = struct.unpack("!i", await reader.readexactly(4))[0]
        await reader.readexactly(size - 4)
        writer.write(b"R\0\0\0\x08\0\0\0\x03")
        heard.append(await reader.read(1000))

    return talk


@pytest.mark.parametrize("mode", ["disable", "require", "verify-full"])
async def test_no_server_gets_the_password_in_clear_text(authority: trustme.CA, mode: str) -> None:
    """A verified one neither: who may write one server resource chooses its CA."""
    heard: list[bytes] = []
    talk = asks_for_cleartext(heard)

    async def maybe_secured(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if mode != "disable":
            await reader.readexactly(8)
            writer.write(b"S")
            await writer.start_tls(server_context(authority))
        await talk(reader, writer)

    ca = authority if mode == "verify-full" else None
    async with listening(maybe_secured) as port:
        fault = await refused(endpoint(port, ca, ssl_mode=mode))

    assert fault.code == "TargetAuthenticationFailed"
    assert "clear text" in fault.message
    assert PASSWORD.encode() not in b"".join(heard)


async def stalls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(8)
    await asyncio.sleep(60)


async def stalls_in_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(8)
    writer.write(b"S")
    await asyncio.sleep(60)


async def notices_for_ever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1000)
    writer.write(b"R\0\0\0\x08\0\0\0\0")
    notice = b"SNOTICE\0Mendless\0\0"
    for _ in range(100_000):
        writer.write((b"N" + struct.pack("!i", 4 + len(notice)) + notice) * 100)
        await writer.drain()
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("talk", "mode"),
    [
        (stalls, "disable"),
        (stalls, "verify-full"),
        (stalls_in_tls, "verify-full"),
        (notices_for_ever, "disable"),
    ],
)
async def test_a_server_that_keeps_us_waiting_is_left_in_time(talk: Talk, mode: str) -> None:
    connector = Connector(
        settings(connect_limit=datetime.timedelta(milliseconds=400)), resolve=Names()
    )
    begin = time.monotonic()
    async with listening(talk) as port:
        fault = await refused(endpoint(port, ssl_mode=mode), connector)

    assert (type(fault), fault.code) == (Unavailable, "TargetTimeout")
    assert time.monotonic() - begin < 2


async def test_a_huge_row_ends_the_connection_before_it_fills_memory() -> None:
    sent = 0

    async def giant(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.read(1000)
        version = b"server_version\x0018.0\0"
        report = b"S" + struct.pack("!i", 4 + len(version)) + version
        writer.write(b"R\0\0\0\x08\0\0\0\0" + report + b"Z\0\0\0\x05I")
        await reader.read(1000)
        writer.write(b"D" + struct.pack("!i", 2**31 - 1))
        while sent < 2**31:
            writer.write(bytes(1 << 20))
            await writer.drain()
            sent += 1 << 20

    async with listening(giant) as port:
        connection = await Connector(settings(), resolve=Names()).open(
            endpoint(port, ssl_mode="disable"), user="u", password=PASSWORD, application_name="x"
        )
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError)):
            await connection.execute("select 1", timeout=10)
        connection.terminate()

    assert sent < 50 << 20


async def test_nonsense_from_a_server_is_a_fault_and_its_words_are_not_repeated() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        text = b"SFATAL\0C53300\0M\x1b[31m<script>" + b"x" * 9000 + b"\0\0"
        writer.write(b"E" + struct.pack("!i", 4 + len(text)) + text)
        await reader.read()

    async with listening(nonsense) as port:
        fault = await refused(endpoint(port, ssl_mode="disable"))

    assert fault.code == "TargetUnreachable"
    assert "script" not in fault.message
    assert "\x1b" not in fault.context + fault.detail
    assert len(fault.context) <= 500 and len(fault.detail) <= 500


async def test_a_server_that_repeats_our_secret_and_makes_up_a_sqlstate_is_not_repeated() -> None:
    async def indiscreet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        text = b"SFATAL\0C'; drop\0Myou said " + PASSWORD.encode() + b"\0\0"
        writer.write(b"E" + struct.pack("!i", 4 + len(text)) + text)
        await reader.read()

    async with listening(indiscreet) as port:
        fault = await refused(endpoint(port, ssl_mode="disable"))

    assert (fault.code, fault.sqlstate) == ("TargetUnreachable", None)
    assert fault.detail == "you said ***"


@pytest.mark.parametrize("version", [b"", b"server_version\0nonsense\0"])
async def test_a_server_that_confuses_the_driver_is_left_with_a_fault(version: bytes) -> None:
    ended = asyncio.Event()

    async def confusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        report = b"S" + struct.pack("!i", 4 + len(version)) + version if version else b""
        writer.write(b"R\0\0\0\x08\0\0\0\0" + report + b"Z\0\0\0\x05I")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set()

    async with listening(confusing) as port:
        fault = await refused(endpoint(port, ssl_mode="disable"))
        async with asyncio.timeout(2):
            await ended.wait()

    assert fault.code == "TargetUnreachable"


# Names and addresses


async def test_a_name_that_is_rebound_after_the_check_is_refused_without_a_packet() -> None:
    arrived = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        arrived += 1

    names = Names([["192.0.2.1"], ["127.0.0.1"]])
    connector = Connector(
        settings(target_allow=(), connect_limit=datetime.timedelta(milliseconds=300)), resolve=names
    )
    async with listening(count) as port:
        first = await refused(endpoint(port, ssl_mode="disable"), connector)
        second = await refused(endpoint(port, ssl_mode="disable"), connector)
        await asyncio.sleep(0.05)

    assert first.code in {"TargetTimeout", "TargetUnreachable"}
    assert (type(second), second.code) == (InvalidRequest, "TargetNotAllowed")
    assert names.asked == [NAME, NAME]
    assert arrived == 0


@pytest.mark.parametrize(
    "answers", [["192.0.2.1", "169.254.169.254"], ["64:ff9b::7f00:1"], ["::1", "192.0.2.1"]]
)
async def test_one_bad_answer_refuses_them_all(answers: list[str]) -> None:
    connector = Connector(settings(target_allow=()), resolve=Names([answers]))

    fault = await refused(endpoint(5432), connector)

    assert fault.code == "TargetNotAllowed"


async def test_our_own_database_is_refused_by_any_name(postgres: Postgres) -> None:
    own = Secret(postgres.url("postgres"))
    connector = Connector(settings(database_url=own), resolve=Names())

    by_name = await refused(endpoint(postgres.port), connector)
    by_address = await refused(endpoint(postgres.port, host="127.0.0.1"), connector)
    by_neighbour = await refused(endpoint(postgres.port, host="127.0.0.2"), connector)

    assert {by_name.code, by_address.code, by_neighbour.code} == {"TargetNotAllowed"}


async def test_embedded_servers_are_reached_at_their_pairs_only(postgres: Postgres) -> None:
    known = Egress(Addresses(embedded=frozenset({("127.0.0.1", postgres.port)})))
    connector = Connector(settings(target_allow=()), known)
    where = endpoint(postgres.port, host="127.0.0.1", ssl_mode="disable")
    connection = await opened(postgres, where, connector=connector)
    await connection.close()

    known.replace(Addresses())

    assert (await refused(where, connector)).code == "TargetNotAllowed"


async def test_an_embedded_server_that_was_just_made_is_reached_and_those_who_wait_share_a_question(
    postgres: Postgres,
) -> None:
    asked = 0

    async def query() -> Addresses:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return Addresses(embedded=frozenset({("127.0.0.1", postgres.port)}))

    connector = Connector(settings(target_allow=()), Egress(Addresses(), query))
    where = endpoint(postgres.port, host="127.0.0.1", ssl_mode="disable")
    async with asyncio.TaskGroup() as group:
        opening = [
            group.create_task(opened(postgres, where, connector=connector)) for _ in range(5)
        ]

    for each in opening:
        await each.result().close()
    assert asked == 2
    assert (await refused(endpoint(9, host="127.0.0.1"), connector)).code == "TargetNotAllowed"


async def test_a_name_of_the_control_plane_s_address_is_refused_in_a_job_process_too(
    postgres: Postgres,
) -> None:
    own = Addresses(own=frozenset({(NAME, postgres.port)}))
    connector = Connector(settings(), Egress(own), resolve=Names([["127.0.0.1"]] * 9))

    by_address = await refused(endpoint(postgres.port, host="127.0.0.1"), connector)
    by_neighbour = await refused(endpoint(postgres.port, host="127.0.0.2"), connector)
    mapped = await refused(endpoint(postgres.port, host="mapped.example.com"), connector)

    assert {by_address.code, by_neighbour.code, mapped.code} == {"TargetNotAllowed"}


async def test_an_unknown_name_is_unreachable() -> None:
    async def unknown(host: str, port: int) -> list[Address]:
        raise OSError("Name or service not known")

    fault = await refused(endpoint(5432), Connector(settings(), resolve=unknown))

    assert (type(fault), fault.code) == (Unavailable, "TargetUnreachable")


async def test_the_systems_resolver_is_asked_by_default() -> None:
    fault = await refused(endpoint(5432, host="no-such-host.invalid"), Connector(settings()))

    assert fault.code in {"TargetUnreachable", "TargetTimeout"}


# Logins and hosts


def plain(postgres: Postgres, **more: Any) -> Endpoint:
    return endpoint(postgres.port, **({"host": "127.0.0.1", "ssl_mode": "disable"} | more))


async def test_a_wrong_password_and_a_missing_database_have_their_codes(postgres: Postgres) -> None:
    role = postgres.administrator

    wrong = await refused(plain(postgres), user=role.name)
    missing = await refused(
        plain(postgres), user=role.name, password=role.password, database="none"
    )

    assert (type(wrong), wrong.code) == (InvalidRequest, "TargetAuthenticationFailed")
    assert (type(missing), missing.code) == (NotFound, "TargetDatabaseNotFound")


async def test_each_way_to_be_refused_reads_differently(postgres: Postgres) -> None:
    """What a DBA does next depends on it: a password, a line of pg_hba.conf, a GRANT."""
    root = await opened(postgres, plain(postgres))
    name = 'odd "name"'
    await root.execute(f'create role "odd ""name""" login password \'{PASSWORD}\'')
    await root.execute('create database "a ""b"""')
    await root.execute('revoke connect on database "a ""b""" from public')

    ungranted = await refused(plain(postgres), user=name, database='a "b"')
    await root.execute('alter role "odd ""name""" nologin')
    kept_out = await refused(plain(postgres), user=name, database="postgres")
    await root.execute('drop database "a ""b"""')
    await root.execute('drop role "odd ""name"""')
    await root.close()
    wrong = await refused(plain(postgres), user=postgres.administrator.name)
    missing = await refused(
        plain(postgres), user=postgres.administrator.name,
        password=postgres.administrator.password, database="none",
    )  # fmt: skip

    assert (ungranted.code, ungranted.sqlstate) == ("ConnectNotGranted", "42501")
    statement = 'GRANT CONNECT ON DATABASE "a ""b""" TO "odd ""name""";'
    assert ungranted.message.endswith(statement)
    assert "CONNECT privilege" in ungranted.detail
    assert (kept_out.code, kept_out.sqlstate) == ("TargetAuthenticationFailed", "28000")
    assert "pg_hba.conf" in kept_out.message and "not permitted to log in" in kept_out.detail
    assert wrong.sqlstate == "28P01" and "the password is wrong" in wrong.message
    assert missing.sqlstate == "3D000" and "'none' does not exist" in missing.message


async def test_the_key_of_a_password_is_derived_once_for_all_logins_of_its_role(
    postgres: Postgres,
) -> None:
    root = await opened(postgres, plain(postgres))
    before = scram_client.KEYS.derived
    for _ in range(3):
        await close(await opened(postgres, plain(postgres)))

    assert scram_client.KEYS.derived == before

    await root.execute("create role keyed login password 'first'")  # has a salt of its own
    login = {"user": "keyed", "application_name": "t", "database": "postgres"}
    for password, accepted in (("first", True), ("first", True), ("other", False)):
        with contextlib.nullcontext() if accepted else pytest.raises(InvalidRequest):
            await close(
                await Connector(settings()).open(plain(postgres), password=password, **login)
            )
    await root.execute("alter role keyed password 'other'")
    with pytest.raises(InvalidRequest):
        await Connector(settings()).open(plain(postgres), password="first", **login)
    await close(await Connector(settings()).open(plain(postgres), password="other", **login))
    await root.execute("drop role keyed")
    await root.close()

    assert scram_client.KEYS.derived == before + 4  # two passwords, each with two salts


async def test_the_environment_has_no_say(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    passfile = tmp_path / "pgpass"
    passfile.write_text(f"*:*:*:*:{postgres.administrator.password}\n")
    passfile.chmod(0o600)
    for name, value in {
        "PGHOST": "192.0.2.1", "PGPORT": "1", "PGUSER": "x", "PGPASSWORD": postgres.administrator.password,
        "PGDATABASE": "x", "PGSSLMODE": "require", "PGSSLNEGOTIATION": "direct", "PGSERVICE": "x",
        "PGPASSFILE": str(passfile), "PGTARGETSESSIONATTRS": "standby", "PGGSSLIB": "nonsense",
        "PGOPTIONS": "-c search_path=x", "HOME": str(tmp_path),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)

    connection = await opened(postgres, plain(postgres))
    assert await connection.fetchval("select current_database()") == "postgres"
    await connection.close()
    fault = await refused(plain(postgres), user=postgres.administrator.name, password="")

    assert fault.code == "TargetAuthenticationFailed"
    assert os.environ["PGPASSWORD"]


async def test_hosts_are_tried_in_order(postgres: Postgres) -> None:
    several = plain(postgres, host=None, hosts=("127.0.0.9", "127.0.0.1"))

    connection = await opened(postgres, several, password=Secret(postgres.administrator.password))

    assert connection.get_server_pid() > 0
    await connection.close()


@pytest.mark.parametrize(
    ("attribute", "found"),
    [
        ("any", True),
        ("read-write", True),
        ("primary", True),
        ("prefer-standby", True),
        ("standby", False),
        ("read-only", False),
    ],
)
async def test_session_attributes_choose_the_host(
    postgres: Postgres, attribute: str, found: bool
) -> None:
    where = plain(postgres, target_session_attrs=attribute)

    if found:
        connection = await opened(postgres, where)
        await connection.close()
    else:
        role = postgres.administrator
        fault = await refused(where, user=role.name, password=role.password)
        assert fault.code == "TargetUnreachable"


async def test_a_session_is_closed_whatever_happens_in_it(postgres: Postgres) -> None:
    connector = Connector(settings())
    role = postgres.administrator
    with pytest.raises(ZeroDivisionError):
        async with connector.session(
            plain(postgres, pooling="transaction"),
            user=role.name,
            password=role.password,
            application_name="gone",
        ) as connection:
            raise ZeroDivisionError

    assert connection.is_closed()


async def test_a_dead_port_is_unreachable() -> None:
    async with listening(stalls) as port:
        pass

    fault = await refused(endpoint(port, host="127.0.0.1"))

    assert (type(fault), fault.code) == (Unavailable, "TargetUnreachable")


async def contacted(where: Endpoint) -> Fault | None:
    try:
        await Connector(settings(), resolve=Names()).contact(where)
    except Fault as fault:
        return fault
    return None


async def test_a_contact_needs_no_login(postgres: Postgres, authority: trustme.CA) -> None:
    assert await contacted(endpoint(postgres.port, ssl_mode="disable")) is None


@pytest.mark.parametrize(
    ("sqlstate", "code"),
    [("28000", None), ("3D000", None), ("53300", None), ("57P03", "TargetUnreachable")],
)
async def test_a_server_that_refuses_a_login_is_there_unless_it_is_shut(
    sqlstate: str, code: str | None
) -> None:
    async with refusing(sqlstate, "no") as port:
        fault = await contacted(endpoint(port, ssl_mode="disable"))

    assert (fault and fault.code) == code


async def test_what_is_not_postgresql_was_not_reached() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(web) as port:
        fault = await contacted(endpoint(port, ssl_mode="disable"))
        without_tls = await contacted(endpoint(port))

    assert fault is not None and fault.code == "TargetUnreachable"
    assert without_tls is not None and without_tls.code == "TargetTlsError"
