"""Servers that demand a client certificate are targets of jobs, and the key is read where they are dialed."""

import base64
import json
from dataclasses import replace
from uuid import UUID

import msgspec
import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fsm.control_database import Recipient
from nodeagent.protocol import DirectoryServer, SyncDirectory
from tests.support.accounts import GROUP, account, sql, start_control_plane
from tests.support.certified import BINARIES, BY_NAME, LOGIN, a_pair, authority_of, demanding
from tests.support.control_db import agent_beside, installed
from tests.support.engine_fixture import PRIVATE_KEY
from tests.support.fleet import start_fleet

pytestmark = [
    pytest.mark.newest,
    pytest.mark.skipif(BINARIES is None, reason="no PostgreSQL here speaks TLS"),
]

PUBLIC_KEY = base64.b64encode(
    X25519PrivateKey.from_private_bytes(base64.b64decode(PRIVATE_KEY))
    .public_key()
    .public_bytes_raw()
).decode()
STRANGE = {"public_key": base64.b64encode(b"\x09" + bytes(31)).decode()}
TARGETS = """
select target_database_name, lifecycle from jobs.job_executions
 where job_execution_id = $1 and target_database_name is not null
"""
SHOWN = "select client_serial::text from pg_stat_ssl where pid = pg_backend_pid()"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate_server(authority):
    with demanding(authority) as server:
        yield server


class CertifiedFleet:
    """A fleet on the server that demands a certificate, and the directory as a control plane sends it."""

    def __init__(self, fleet, agent, authority, server) -> None:
        self.fleet, self.agent = fleet, agent
        self._authority, self._server = authority, server
        self.account = fleet.account
        self.recipient = Recipient(self.account.uid, self.account.identity, PUBLIC_KEY)
        self._revision = 1

    async def show(self, pair=None, *, mark="1", recipient=None, **more):
        """The next revision of the directory, with what the server is shown from here on."""
        self._revision += 1
        server = DirectoryServer(
            server_id="/fleet", name="fleet", hosts=("127.0.0.1",), port=self._server.port,
            ca_certificate=authority_of(self._authority), job_credential="fleet", **more,
        )  # fmt: skip
        keys = {}
        if pair is not None:
            server = msgspec.structs.replace(
                server, client_certificate=pair.certificate, client_key_fingerprint=mark
            )
            keys = {"/fleet": (recipient or self.recipient).sealed("/fleet", pair.key)}
        command = SyncDirectory(revision=self._revision, servers=(server,), client_keys=keys)
        return await self.agent.run(self.account, command)

    async def log_in_as(self, name):
        await self.fleet.root.execute("update jobs_internal.credential set username = $1", name)

    async def attempt(self, script=SHOWN):
        (task,) = await self.fleet.tasks(await self.fleet.run(script))
        return task

    async def row(self):
        found = await self.fleet.root.fetchrow("select * from jobs_internal.server_directory")
        return dict(found)


@pytest.fixture
async def certified_fleet(settings, db, targets, tmp_path, authority, certificate_server):
    account = await installed(settings, db, targets)
    async with (
        agent_beside(settings, db) as agent,
        start_fleet(
            settings, db, certificate_server, tmp_path, account=account, databases=1
        ) as running,
    ):
        made = CertifiedFleet(running, agent, authority, certificate_server)
        await made.log_in_as(LOGIN)
        yield made


def serial(task) -> int:
    return int(json.loads(task["results"])[0]["rows"][0][0])


async def test_a_task_shows_the_certificate_and_the_next_one_after_it_was_changed(
    certified_fleet, authority
):
    first, second = a_pair(authority), a_pair(authority)
    await certified_fleet.show(first, mark="1")
    before = await certified_fleet.attempt()

    await certified_fleet.show(second, mark="2")
    after = await certified_fleet.attempt()

    assert (before["lifecycle"], after["lifecycle"]) == ("Succeeded", "Succeeded")
    assert serial(before) != serial(after)


async def test_a_certificate_alone_is_no_login_for_jobs_whatever_the_server_says(
    certified_fleet, authority
):
    """It may be the administrator's, whose login no step is lent."""
    await certified_fleet.log_in_as(BY_NAME)
    await certified_fleet.show(a_pair(authority, BY_NAME))

    refused = await certified_fleet.attempt("select current_user::text")

    assert (refused["lifecycle"], refused["end_reason"]) == ("Failed", "ConnectFailed")
    assert "by its client certificate alone" in refused["message"]


async def test_without_a_certificate_the_servers_words_are_told_until_it_has_one(
    certified_fleet, authority
):
    await certified_fleet.show()
    refused = await certified_fleet.attempt()
    await certified_fleet.show(a_pair(authority))
    healed = await certified_fleet.attempt()

    assert (refused["end_reason"], refused["sqlstate"]) == ("ConnectFailed", "28000")
    assert "client certificate" in refused["message"]
    assert refused["detail"] == "connection requires a valid client certificate"
    assert healed["lifecycle"] == "Succeeded"


@pytest.mark.parametrize("field", ["account", "identity", "public_key"])
async def test_a_key_that_is_not_for_us_says_what_to_do_and_nothing_of_itself(
    certified_fleet, authority, field
):
    stranger = replace(certified_fleet.recipient, **{field: STRANGE.get(field, UUID(int=9))})
    await certified_fleet.show(a_pair(authority), recipient=stranger)

    task = await certified_fleet.attempt()

    assert (task["lifecycle"], task["end_reason"]) == ("Failed", "ClientKeyUnreadable")
    assert "'fleet'" in task["message"] and "endpoint.clientKey" in task["message"]
    assert "sealed:" not in str(dict(task)) and "PRIVATE" not in str(dict(task))


async def test_a_server_that_demands_one_lists_its_databases(certified_fleet, authority):
    await certified_fleet.show(a_pair(authority))
    await certified_fleet.fleet.call("sp_add_target_group", target_group_name="server")
    await certified_fleet.fleet.call(
        "sp_add_target_group_member", target_group_name="server", target_type="SqlServer",
        server_name="fleet", refresh_credential_name="fleet",
    )  # fmt: skip

    run = await certified_fleet.fleet.run(SHOWN, group="server")

    ran = {tuple(row) for row in await certified_fleet.fleet.root.fetch(TARGETS, run)}
    assert (certified_fleet.fleet.databases[0], "Succeeded") in ran
    assert {lifecycle for _, lifecycle in ran} == {"Succeeded"}


async def test_the_key_stands_nowhere_but_sealed(certified_fleet, authority):
    pair = a_pair(authority)
    await certified_fleet.show(pair)
    await certified_fleet.attempt()

    row, everything = await certified_fleet.row(), str(await certified_fleet.account.state())

    assert row["client_key"].startswith("sealed:")
    assert row["client_certificate"] == pair.certificate
    assert "BEGIN CERTIFICATE" in everything
    assert "PRIVATE KEY" not in everything
    assert pair.key.splitlines()[1] not in everything


async def test_a_server_is_not_changed_by_sealing_its_key_anew(certified_fleet, authority):
    pair = a_pair(authority)
    await certified_fleet.show(pair)
    first = await certified_fleet.row()

    answer = await certified_fleet.show(pair)
    same = await certified_fleet.row()
    await certified_fleet.show(pair, mark="set again")
    again = await certified_fleet.row()

    assert answer.applied and same == first
    assert again["revision"] > first["revision"] and again["client_key"] != first["client_key"]


async def test_a_key_that_is_not_sealed_is_refused(certified_fleet, authority):
    with pytest.raises(Exception, match="a_client_key_is_sealed"):
        await certified_fleet.fleet.root.execute(
            "update jobs_internal.server_directory"
            " set client_certificate = 'x', client_key = 'x', client_key_fingerprint = 'x'"
        )


async def test_a_schema_of_before_is_served(certified_fleet, certificate_server):
    await certified_fleet.fleet.root.execute(
        "alter table jobs_internal.server_directory drop column client_certificate cascade,"
        " drop column client_key cascade, drop column client_key_fingerprint cascade"
    )
    await certified_fleet.log_in_as(certificate_server.administrator.name)

    task = await certified_fleet.attempt("select 1")

    assert task["lifecycle"] == "Succeeded"


def test_a_job_reaches_a_server_that_was_registered_with_a_certificate(
    settings, targets, tmp_path, authority, certificate_server
):
    pair, server = a_pair(authority), f"{GROUP}/providers/Microsoft.Sql/servers/locked"
    endpoint = {
        "host": "127.0.0.1", "port": certificate_server.port, "caCertificate": authority_of(authority),
        "clientCertificate": pair.certificate, "clientKey": pair.key,
    }  # fmt: skip
    login = {"username": LOGIN, "password": certificate_server.administrator.password}
    sql(
        certificate_server.url("postgres", certificate_server.administrator), "create database shop"
    )
    with start_control_plane(settings, targets, tmp_path / "launcher") as control_plane:
        control_plane.create("a")
        control_plane.put(f"{account('a')}/credentials/login", {"properties": login})
        properties = {"endpoint": endpoint, "jobCredential": "login"}
        control_plane.put(server, {"location": "local", "properties": properties})
        allowed = control_plane.http.post(f"{account('a')}/allowServer", json={"server": "locked"})
        assert allowed.status_code == 200, allowed.text
        control_plane.until(lambda: control_plane.control("a", KNOWN))

        control_plane.control("a", DEFINED)
        control_plane.control("a", "select jobs.sp_start_job('j')")

        control_plane.until(lambda: control_plane.control("a", ENDED))
        told = control_plane.control("a", ENDED)
        metadata = "".join(
            str(control_plane.metadata(f"select * from {name}")) for name in tables(control_plane)
        )
        logs = "".join(file.read_text() for file in (tmp_path / "launcher").rglob("*.log"))

    assert [tuple(row)[:2] for row in told] == [("shop", "Succeeded")], told
    assert "PRIVATE KEY" not in metadata + logs
    assert "BEGIN CERTIFICATE" in metadata and "host registered" in logs


KNOWN = (
    "select from jobs_internal.server_directory where name = 'locked' and client_key is not null"
)
DEFINED = """
select jobs.sp_add_target_group('g'),
       jobs.sp_add_target_group_member('g', target_type => 'SqlServer', server_name => 'locked',
                                       refresh_credential_name => 'login'),
       jobs.sp_add_job('j'),
       jobs.sp_add_jobstep('j', command => 'select 1', target_group_name => 'g')
"""
ENDED = """
select target_database_name, lifecycle, last_message from jobs.job_executions
 where end_time is not null and (target_database_name is not null or lifecycle = 'Failed')
"""


def tables(control_plane) -> list[str]:
    query = "select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
    return [row["name"] for row in control_plane.metadata(query)]
