"""The process `muster nodeagent`: its listener, its registration, and both ends of the line."""

import asyncio
import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import pytest
import trustme

from muster.core.errors import Unavailable
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from muster.roles import nodeagent
from nodeagent.client import AgentClient
from nodeagent.protocol import ReadEpoch, VerifySchema
from nodeagent.snapshot import describe, path
from tests.support.control_db import a_control_database


@contextlib.asynccontextmanager
async def running(settings):
    stop, told = asyncio.Event(), asyncio.get_running_loop().create_future()
    role = asyncio.create_task(nodeagent.run(settings, stop, told.set_result))
    try:
        await asyncio.wait({role, told}, return_when=asyncio.FIRST_COMPLETED)
        if role.done():
            role.result()
        yield told.result()
    finally:
        stop.set()
        await role


async def ask(settings, db, account, command, role):
    keyring = Keyring(settings.keys)
    async with AgentClient(settings, db, keyring) as client:
        return await client.run(account.uid, uuid4(), command, account.login(keyring, role))


async def test_it_registers_serves_and_leaves(settings, db, targets):
    account = await a_control_database(targets)
    async with running(settings) as told:
        rows = await db.fetch("select url, servers, version from node_agents")
        assert [row["url"] for row in rows] == [told["url"]]
        await ask(settings, db, account, account.install(Keyring(settings.keys)), "administrator")

        verified = await ask(settings, db, account, VerifySchema(), "agent")

        assert verified.account_uid == account.uid
        async with httpx.AsyncClient() as http:
            assert (await http.get(told["url"] + "/healthz")).status_code == 200
            assert (await http.get(told["url"] + "/else")).status_code == 404
    assert await db.fetch("select * from node_agents") == []


async def test_an_agent_that_died_without_leaving_is_unavailable(settings, db, targets):
    account = await a_control_database(targets)
    async with running(settings) as told:
        pass
    await db.execute("insert into node_agents values ('dead', $1, null, '0')", told["url"])

    with pytest.raises(Unavailable) as caught:
        await ask(settings, db, account, ReadEpoch(), "agent")

    assert caught.value.code == "NodeAgentUnavailable"


async def test_another_live_agent_is_taken_when_the_first_can_not_be_reached(settings, db, targets):
    account = await a_control_database(targets)
    async with running(settings):
        beside = account.login(Keyring(settings.keys)).server
        dead = "insert into node_agents values ('dead', 'http://127.0.0.1:9', $1, '0')"
        await db.execute(dead, [beside])

        install = account.install(Keyring(settings.keys))
        installed = await ask(settings, db, account, install, "administrator")

    assert installed.identity == account.identity


@dataclass(frozen=True)
class Certified:
    """Settings with a certificate: a good one, and ones that are not to be believed."""

    ours: Settings
    strange: Settings
    expired: Settings
    elsewhere: Settings


@pytest.fixture
def certificates(settings, tmp_path):
    """An authority, and settings with a certificate of it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    def issued(by, name, host="127.0.0.1", **validity):
        leaf = by.issue_cert(host, **validity)
        leaf.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        leaf.cert_chain_pems[0].write_to_path(tmp_path / f"{name}.pem")
        return replace(
            settings,
            node_agent_tls_cert=tmp_path / f"{name}.pem",
            node_agent_tls_key=tmp_path / f"{name}.key",
            node_agent_tls_ca=tmp_path / "ca.pem",
        )

    past = datetime(2020, 1, 1, tzinfo=UTC)
    return Certified(
        ours=issued(authority, "ours"),
        strange=issued(trustme.CA(), "strange"),
        expired=issued(authority, "expired", not_before=past, not_after=past + timedelta(days=1)),
        elsewhere=issued(authority, "elsewhere", host="agent.elsewhere.test"),
    )


async def test_both_ends_show_a_certificate_of_our_authority(certificates, db, targets):
    ours, strange = certificates.ours, certificates.strange
    account = await a_control_database(targets)
    install = account.install(Keyring(ours.keys))
    async with running(ours) as told:
        assert told["url"].startswith("https://")

        installed = await ask(ours, db, account, install, "administrator")

        assert installed.identity == account.identity
        for stranger in (
            strange,
            replace(
                ours, node_agent_tls_cert=None, node_agent_tls_key=None, node_agent_tls_ca=None
            ),
        ):
            with pytest.raises(Unavailable):
                await ask(stranger, db, account, ReadEpoch(), "agent")


async def test_an_expired_certificate_and_one_for_another_name_are_refused(
    certificates, db, targets
):
    ours = certificates.ours
    account = await a_control_database(targets)
    async with running(ours):
        with pytest.raises(Unavailable):  # the agent refuses a client of the past
            await ask(certificates.expired, db, account, ReadEpoch(), "agent")
    for agent in (certificates.expired, certificates.elsewhere):
        async with running(agent):
            with pytest.raises(Unavailable):  # the client refuses such an agent
                await ask(ours, db, account, ReadEpoch(), "agent")


@pytest.mark.newest  # another major prints views in another way
async def test_the_snapshot_for_reviewers_is_true(settings, db, targets):
    account = await a_control_database(targets)
    async with running(settings):
        await ask(settings, db, account, account.install(Keyring(settings.keys)), "administrator")

    connection = await account.connect("administrator")
    try:
        assert await describe(connection) == path().read_text(encoding="utf-8")
    finally:
        await connection.close()
