"""The rules about where we connect to, and the guard before asyncpg: pure, with the attack list E."""

import hashlib
import ipaddress
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

import muster
from muster.core.connect import (
    Connector,
    Endpoint,
    Rules,
    check_address,
    check_endpoint,
    check_host_syntax,
)
from muster.core.egress import CLOSED, Entry, address_of, own_addresses, servers_of
from muster.core.errors import FieldError
from muster.core.settings import Secret, Settings, SettingsError
from muster.core.scram_client import MOST_ITERATIONS
from muster.core.weak_login import METHODS, WeakLogin
from muster.core.pinned_transport import HANDSHAKE_LIMIT, MESSAGE_LIMIT, Guard

ROOT = Path(muster.__file__).parents[1]
OPEN = Rules()


def rules(**settings: Any) -> Rules:
    return Rules.of(
        Settings(database_url=Secret("postgresql://u:p@meta.example.com:5433/m"), **settings)
    )


def refused(host: str, port: object = 5432, by: Rules = OPEN) -> bool:
    errors = check_host_syntax(host, port, by)
    assert {error.code for error in errors} <= {"InvalidTargetServer"}
    return bool(errors)


def denied(address: str, port: int = 5432, by: Rules = OPEN, host: str = "") -> bool:
    return check_address(ipaddress.ip_address(address), port, by, host=host) is not None


ATTACKS = """
127.0.0.1 localhost LOCALHOST ::1 0.0.0.0 2130706433 0x7f.1 127.1 ::ffff:127.0.0.1 0177.0.0.1 127.0.0.01
0x7f000001 127.0.0.1. localhost. db.localhost localhost.localdomain 0 1 :: 127.255.255.254
169.254.169.254 fd00:ec2::254 [fd00:ec2::254] 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: ::ffff:10.0.0.1
100.100.100.200 168.63.129.16 192.0.0.192 224.0.0.1 255.255.255.255 fe80::1 fe80::1%eth0 ff02::1
2001:0:53aa:64c:0:0:0:0 ::127.0.0.1 64:ff9b:1::1 64:ff9b::7f00:1 fec0::1
/var/run/postgresql @abstract h1,h2 h1.example.com,h2.example.com h?options=-c db.example.com?options=-c
db.example.com/x db.example.com:5432 user@db.example.com a..b .example.com example.com. -a.example.com
db.example.com#x db.exa%6dple.com １２７.0.0.1 ①.example.com bücher.example.com 1.2.3 1.2.3.4.5 a.0x1 a.1
""".split()


@pytest.mark.parametrize(
    "host",
    [
        *ATTACKS,
        "",
        " ",
        "h sslmode=disable",
        "db.example.com\n",
        "db.example.com\0",
        "a" * 64 + ".b",
        "x." * 127 + "y",
    ],
)
def test_a_host_of_the_attack_list_is_refused_when_it_is_written(host: str) -> None:
    assert refused(host)


@pytest.mark.parametrize(
    "port", [22, 6379, 0, 65_536, -1, "5432 host=x", "5432", None, True, 2375, 1023]
)
def test_a_port_of_the_attack_list_is_refused_when_it_is_written(port: object) -> None:
    assert [error.target for error in check_host_syntax("db.example.com", port)] == [
        "properties.endpoint.port"
    ]


@pytest.mark.parametrize(
    "host", ["db.example.com", "DB.Example.Com", "10.1.2.3", "192.168.0.9", "172.16.0.1", "8.8.8.8",
             "fd12:3456::1", "2606:4700::1111", "64:ff9b::a00:1", "xn--bcher-kva.example.com", "my_db.internal"]
)  # fmt: skip
def test_ordinary_and_private_servers_are_accepted(host: str) -> None:
    assert not refused(host)


def test_wrong_host_and_wrong_port_are_both_reported() -> None:
    assert len(check_host_syntax("127.0.0.1", 0)) == 2
    assert len(check_host_syntax("10.0.0.1", 22)) == 1


def test_a_name_without_a_domain_needs_the_operators_word() -> None:
    assert refused("postgres")
    assert not refused("postgres", by=rules(target_allow=("postgres",)))


def test_a_single_port_in_the_list_opens_even_a_well_known_one() -> None:
    assert not refused("db.example.com", 6379, by=rules(target_ports=("5432", "6379")))
    assert refused("db.example.com", 5433, by=rules(target_ports=("5432", "6379")))


def test_our_own_database_is_refused_by_name_and_by_address() -> None:
    own = Rules(own=frozenset({("meta.example.com", 5433), ("10.0.0.7", 6380)}))

    assert refused("Meta.example.com", 5433, by=own)
    assert not refused("meta.example.com", 5432, by=own)
    assert denied("10.0.0.7", 6380, by=own)
    assert denied("::ffff:10.0.0.7", 6380, by=own)


def test_an_embedded_server_is_reached_at_exactly_its_port() -> None:
    embedded = Rules(extra=frozenset({("127.0.0.1", 21_000)}))

    assert not denied("127.0.0.1", 21_000, by=embedded)
    assert denied("127.0.0.1", 21_001, by=embedded)
    assert denied("127.0.0.2", 21_000, by=embedded)
    assert denied("127.0.0.1", 21_000, by=embedded, host="rebound.example.com")


def test_what_the_operator_denies_is_denied_even_where_an_embedded_server_is_allowed() -> None:
    by = replace(rules(target_deny=("127.0.0.1:21000",)), extra=frozenset({("127.0.0.1", 21_000)}))

    assert denied("127.0.0.1", 21_000, by=by)


@pytest.mark.parametrize(
    ("url", "pairs"),
    [
        ("postgresql://u:p@db.internal/m", {("db.internal", 5432)}),
        ("postgresql://u@/m?host=10.0.0.7&port=5433", {("10.0.0.7", 5433)}),
        ("postgresql://u@h1:6000,h2/m", {("h1", 6000), ("h2", 5432)}),
        ("postgresql://u@/m?host=/run/postgresql&port=5433", {("127.0.0.1", 5433)}),
        ("postgresql://u@%2Frun%2Fpostgresql/m", {("127.0.0.1", 5432)}),
        ("rediss://:p@cache:6380/0", {("cache", 6380)}),
        ("https://agent.internal", {("agent.internal", 443)}),
    ],
)
def test_where_a_url_leads_is_found_however_it_is_written(url: str, pairs: set[object]) -> None:
    assert servers_of(url) == pairs


def test_every_listener_of_the_control_plane_is_its_own() -> None:
    own = own_addresses(
        Settings(
            database_url=Secret("postgresql://u:p@10.0.0.1:5433/m"),
            redis_url=Secret("redis://10.0.0.2"),
            listen="0.0.0.0:8443",
            internal_listen="127.0.0.1:8081",
            node_agent_listen="127.0.0.1:0",
            node_agent_url="https://agent:9443",
        )
    )

    assert own == {
        ("10.0.0.1", 5433), ("10.0.0.2", 6379), ("0.0.0.0", 8443), ("127.0.0.1", 8081), ("agent", 9443),
    }  # fmt: skip


def test_our_own_database_is_denied_even_where_an_embedded_server_is_allowed() -> None:
    both = Rules(extra=frozenset({("127.0.0.1", 21_000)}), own=frozenset({("127.0.0.1", 21_000)}))

    assert denied("127.0.0.1", 21_000, by=both)


def test_allow_inside_a_closed_range_opens_it_and_restricts_nothing() -> None:
    by = rules(target_allow=("127.0.0.0/8",))

    assert not denied("127.0.0.1", by=by)
    assert not denied("10.0.0.1", by=by)
    assert denied("169.254.169.254", by=by)
    assert denied("::1", by=by)


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "localhost"])
def test_a_closed_address_names_the_setting_that_opens_it(host: str) -> None:
    [wrong] = check_host_syntax(host, 5432)

    assert "its address is closed (" in wrong.message
    address = "127.0.0.1" if host == "localhost" else host
    assert f"adds {address}:5432 to MUSTER_TARGET_ALLOW" in wrong.message
    assert f"`muster up --allow-target {address}:5432`" in wrong.message
    assert "separated by commas" in wrong.message and "after a restart" in wrong.message


def test_what_the_message_names_opens_the_address() -> None:
    assert not denied("127.0.0.1", 5432, by=rules(target_allow=("127.0.0.1:5432",)))
    assert not denied("::1", 5432, by=rules(target_allow=("[::1]:5432",)))


def test_a_port_that_is_closed_names_the_setting_that_opens_it() -> None:
    [wrong] = check_host_syntax("db.example.com", 443)

    assert "MUSTER_TARGET_PORTS" in wrong.message and "now 1024-65535" in wrong.message
    assert "after a restart" in wrong.message
    assert check_host_syntax("db.example.com", 443, rules(target_ports=("443",))) == []


def test_a_name_or_an_address_outside_the_list_names_the_setting() -> None:
    by = rules(target_allow=("*.example.com",))

    [wrong] = check_host_syntax("10.1.2.3", 5432, by)
    assert "adds 10.1.2.3:5432 to MUSTER_TARGET_ALLOW" in wrong.message
    [wrong] = check_host_syntax("db-7", 5432)
    assert "adds db-7:5432 to MUSTER_TARGET_ALLOW" in wrong.message
    assert check_host_syntax("db-7", 5432, rules(target_allow=("db-7:5432",))) == []


def test_a_wide_allow_opens_no_closed_range() -> None:
    by = rules(target_allow=("0.0.0.0/0", "::/0"))

    assert denied("127.0.0.1", by=by)
    assert denied("169.254.169.254", by=by)
    assert not denied("8.8.8.8", by=by)


def test_any_other_allow_is_the_full_list() -> None:
    by = rules(target_allow=("10.0.0.0/8:5432", "*.example.com"))

    assert not denied("10.9.9.9", by=by)
    assert denied("10.9.9.9", 5433, by=by)
    assert denied("8.8.8.8", by=by)
    assert not denied("8.8.8.8", by=by, host="db.example.com")
    assert denied("127.0.0.1", by=by, host="db.example.com")
    assert denied("8.8.8.8", by=by, host="db.example.com.evil.net")


def test_deny_wins() -> None:
    by = rules(
        target_allow=("10.0.0.0/8",), target_deny=("10.1.0.0/16", "*.evil.net", "[fd00::/8]:5432")
    )

    assert denied("10.1.2.3", by=by)
    assert not denied("10.2.2.3", by=by)
    assert denied("10.2.2.3", by=by, host="db.evil.net")
    assert denied("fd00::1", by=by)


def test_every_wrong_word_of_the_settings_is_named() -> None:
    with pytest.raises(SettingsError, match=r"10.0.0.0/33.*a b.*127.1.*70000"):
        rules(
            target_allow=("10.0.0.0/33", "a b"),
            target_deny=("127.1",),
            target_ports=("70000", "5432"),
        )


@pytest.mark.parametrize("network", CLOSED, ids=str)
def test_every_closed_range_is_closed_at_both_ends(network: ipaddress.IPv4Network) -> None:
    assert denied(str(network[0]))
    assert denied(str(network[-1]))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_disguise(address: ipaddress.IPv4Address) -> None:
    plain = denied(str(address))

    assert denied(f"::ffff:{address}") == plain
    assert (
        denied(str(ipaddress.ip_address(int(ipaddress.ip_address("64:ff9b::")) + int(address))))
        == plain
    )
    assert refused(str(int(address)))
    assert refused(hex(int(address)))


@given(st.text(max_size=60), st.integers() | st.text(max_size=8))
def test_any_text_is_judged_without_an_exception(host: str, port: object) -> None:
    errors = check_host_syntax(host, port)

    assert all(isinstance(error, FieldError) for error in errors)
    if not errors:
        assert host.isascii() and not set(host) & set(" /@,?#%[]\\\0\n'\"=")


@given(st.text(alphabet="0123456789abcdefx.:*/[]", max_size=30))
def test_an_entry_is_a_network_or_a_pattern_or_a_value_error(text: str) -> None:
    try:
        entry = Entry.parse(text)
    except ValueError:
        return
    assert (entry.network is None) != (entry.pattern is None)


def test_addresses_of_urls() -> None:
    assert servers_of("postgresql://u:p%40x@h1:1,h2/db?sslmode=disable") == {
        ("h1", 1),
        ("h2", 5432),
    }
    assert servers_of("rediss://:p@[fd00::1]:7000/0") == {("fd00::1", 7000)}
    assert servers_of("redis://cache") == {("cache", 6379)}
    assert address_of("fe80::1%eth0") is None


@pytest.mark.parametrize(
    "text",
    [None, "", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"],
)
def test_a_ca_file_that_holds_none_stops_the_process_at_its_start(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)

    with pytest.raises(SettingsError, match="MUSTER_TARGET_CA_FILE"):
        Connector(Settings(database_url=Secret(""), target_ca_file=file))


# Endpoints


def test_an_endpoint_travels_in_camel_case_and_hides_its_key() -> None:
    sent = b'{"host":"db.example.com","sslMode":"require","clientKey":"PRIVATE","targetSessionAttrs":"primary"}'

    endpoint = msgspec.json.decode(sent, type=Endpoint)

    assert (endpoint.ssl_mode, endpoint.port, endpoint.maintenance_database) == (
        "require",
        5432,
        "postgres",
    )
    assert "PRIVATE" not in repr(endpoint)


def test_an_endpoint_reports_everything_at_once() -> None:
    errors = check_endpoint(
        Endpoint(host="127.0.0.1", hosts=("a,b",), port=22, ssl_mode="prefer", pooling="x",
                 target_session_attrs="y", client_key="z", direct_host="/tmp")
    )  # fmt: skip

    assert sorted({error.target.rpartition(".")[2] for error in errors}) == [
        "clientCertificate", "directHost", "host", "pooling", "port", "sslMode", "targetSessionAttrs",
    ]  # fmt: skip


def test_pem_texts_are_tried_when_they_are_written() -> None:
    authority = trustme.CA()
    pair = authority.issue_cert("client.example.com")
    chain = b"".join(blob.bytes() for blob in pair.cert_chain_pems).decode()
    key = pair.private_key_pem.bytes().decode()
    good = Endpoint(host="db.example.com", ca_certificate=authority.cert_pem.bytes().decode(),
                    client_certificate=chain, client_key=key)  # fmt: skip
    other = authority.issue_cert("x.example.com").private_key_pem.bytes().decode()

    assert check_endpoint(good) == []
    for field, value in (
        ("ca_certificate", "no pem"),
        ("client_key", other),
        ("client_certificate", "no pem"),
    ):
        errors = check_endpoint(msgspec.structs.replace(good, **{field: value}))
        assert len(errors) == 1
        assert "PEM" in errors[0].message


def test_direct_goes_past_the_pooler() -> None:
    pooled = Endpoint(
        hosts=("p1.example.com", "p2.example.com"),
        pooling="transaction",
        direct_host="db.example.com",
    )

    assert pooled.direct().names == ("db.example.com",)
    assert pooled.direct().pooling == "none"
    assert Endpoint(host="db.example.com").direct().names == ("db.example.com",)


@pytest.mark.parametrize(
    ("direct_host", "host", "port"),
    [
        ("db", "db", 6432),
        ("db:5432", "db", 5432),
        ("10.0.0.1:5433", "10.0.0.1", 5433),
        ("[fd00::1]:5433", "fd00::1", 5433),
        ("fd00::1", "fd00::1", 6432),
    ],
)
def test_past_the_pooler_the_port_may_differ(direct_host: str, host: str, port: int) -> None:
    direct = Endpoint(host="pooler", port=6432, direct_host=direct_host).direct()

    assert (direct.names, direct.port) == ((host,), port)


def test_what_is_wrong_with_the_direct_host_is_told_of_it() -> None:
    endpoint = Endpoint(host="db.example.com", direct_host="db.example.com:99999")

    assert [error.target for error in check_endpoint(endpoint)] == [
        "properties.endpoint.directHost"
    ]


# The guard


class Recorder:
    """Stands for asyncpg's protocol, the transport and the dialer at once."""

    def __init__(self) -> None:
        self.received = b""
        self.written = b""
        self.aborted = False
        self.refusal: str | None = None
        self.password = "secret"
        self.weak: WeakLogin | None = None
        self.proven = False
        self.guard = Guard(self, self)  # type: ignore[arg-type]
        self.guard._transport = self  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.received += data

    def write(self, data: bytes) -> None:
        self.written += data

    def get_extra_info(self, _: str) -> None:
        return None

    def abort(self) -> None:
        self.aborted = True


MD5_OF_SECRET = (
    hashlib.md5(
        hashlib.md5(b"secretada", usedforsecurity=False).hexdigest().encode() + b"salt",
        usedforsecurity=False,
    )
    .hexdigest()
    .encode()
)


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def auth(code: int, body: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!i", code) + body)


ACCEPTED = auth(0) + message(b"S", b"a\0b\0") + message(b"Z", b"I")


@pytest.mark.parametrize("code", [3, 5])
def test_a_password_goes_to_no_server_in_clear_text_or_as_an_md5_hash(code: int) -> None:
    server = Recorder()

    server.guard.data_received(auth(code, b"salt"))

    assert server.received == server.written == b"" and server.aborted
    assert "scram-sha-256" in (server.refusal or "")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("code", "answered_under", "answer"),
    [
        (3, "password", b"secret"),
        # The hash of PostgreSQL: md5(md5(password || user) || salt)
        (5, "md5", b"md5" + MD5_OF_SECRET),
    ],
)
def test_a_weaker_login_is_made_only_by_the_method_that_was_allowed(
    code: int, answered_under: str, answer: bytes, method: str
) -> None:
    server = Recorder()
    server.weak = WeakLogin(method, "ada", "secret")

    server.guard.data_received(auth(code, b"salt"))

    if method == answered_under:
        assert server.written == message(b"p", answer + b"\0")
        server.guard.data_received(auth(code, b"salt"))  # a password is shown once
    assert server.aborted and b"secret" not in server.written.removeprefix(
        message(b"p", b"secret\0")
    )


@pytest.mark.parametrize("code", [2, 6, 7, 8, 9, 11, 12, 13, 99, -1])
def test_other_ways_to_authenticate_are_refused(code: int) -> None:
    server = Recorder()

    server.guard.data_received(auth(code))

    assert server.aborted and server.received == b""


@pytest.mark.parametrize(
    ("rounds", "passes"),
    [(4096, True), (MOST_ITERATIONS, True), (MOST_ITERATIONS + 1, False), (10**40, False)]
    + [(4095, False), (1, False), (0, False)],
)
def test_the_iterations_of_scram_have_limits(rounds: int, passes: bool) -> None:  # noqa: FBT001 - a table
    server = Recorder()
    server.guard.data_received(auth(10, b"SCRAM-SHA-256\0\0"))
    nonce = server.written.rpartition(b"r=")[2]

    server.guard.data_received(auth(11, b"r=%sx,s=c2FsdA==,i=%d" % (nonce, rounds)))

    assert server.aborted != passes
    assert (b"p=" in server.written) == passes


def test_a_server_that_accepts_without_a_proof_is_refused() -> None:
    """Whoever stands there does not know the password and wants to hear what is sent next."""
    server = Recorder()
    server.guard.data_received(auth(10, b"SCRAM-SHA-256\0\0"))
    nonce = server.written.rpartition(b"r=")[2]
    server.guard.data_received(auth(11, b"r=%sx,s=c2FsdA==,i=4096" % nonce))

    server.guard.data_received(auth(0))

    assert server.aborted and server.received == b""
    assert "prove" in (server.refusal or "")


def test_a_server_that_talks_too_much_before_the_login_is_left() -> None:
    server = Recorder()

    for _ in range(HANDSHAKE_LIMIT // 1000 + 1):
        server.guard.data_received(message(b"N", bytes(995)))

    assert server.aborted
    assert len(server.received) <= HANDSHAKE_LIMIT


def test_a_message_above_the_limit_ends_the_connection_at_its_header() -> None:
    server = Recorder()
    server.guard.data_received(ACCEPTED)

    server.guard.data_received(
        message(b"D", bytes(100)) + b"D" + struct.pack("!i", MESSAGE_LIMIT + 1)
    )
    server.guard.data_received(bytes(1000))

    assert server.aborted
    assert server.received == ACCEPTED


@pytest.mark.parametrize(
    "noise", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"R\0\0\0\0", b"R\0\0\0\3", bytes(40)]
)
def test_another_protocol_is_not_passed_on(noise: bytes) -> None:
    server = Recorder()

    server.guard.data_received(noise)
    server.guard.data_received(bytes(HANDSHAKE_LIMIT))

    assert server.aborted and server.received == b""


@given(
    st.lists(st.binary(max_size=40), max_size=8),
    st.lists(st.integers(1, 30), min_size=1, max_size=30),
)
def test_bytes_pass_unchanged_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = ACCEPTED + b"".join(message(b"D", body) for body in bodies)
    server = Recorder()

    at = 0
    while at < len(stream):
        size = cuts[at % len(cuts)]
        server.guard.data_received(stream[at : at + size])
        at += size

    assert server.received == stream
    assert not server.aborted


# The rule about this module


def test_nobody_else_opens_connections() -> None:
    metadata = {"muster/core/db.py", "muster/core/cluster.py", "muster/core/wake.py"}
    found = {
        path.relative_to(ROOT).as_posix()
        for package in ("api", "workflows", "fsm", "nodeagent", "engine", "muster")
        for path in (ROOT / package).rglob("*.py")
        if "asyncpg.connect" in path.read_text(encoding="utf-8")
    }

    assert found <= {"muster/core/connect.py"} | metadata
