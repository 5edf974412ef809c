"""What the control plane sends as the directory, and when; keys of client certificates are sealed for each account."""

from uuid import UUID

import pytest
import trustme

from fsm.account import S
from muster.core.sealing import belongs_to_server, open_sealed
from tests.support.account_fixture import AccountWorld
from tests.support.certified import a_pair
from tests.support.fake_clusters import FakeClusters
from tests.support.lifecycle_fixture import unhurried
from workflows.access import Q

KEY = "endpoint.clientKey"
SERVERS = "from resource where type = 'Microsoft.Sql/servers'"


@pytest.fixture
def pair():
    return a_pair(trustme.CA())


@pytest.fixture
async def world(db, settings, targets):
    made = AccountWorld(db, unhurried(settings), targets, FakeClusters(targets))
    made.account = await made.put_account()
    await made.run()
    assert await made.state(made.account) == S.READY
    return made


async def set_key(world, pair) -> None:
    """As a PUT stores it."""
    (row,) = await world.db.fetch(f"select uid, properties {SERVERS}")
    endpoint = row["properties"]["endpoint"] | {"clientCertificate": pair.certificate}
    await world.db.execute(
        "update resource set properties = properties || $2, sealed = sealed || $3 where uid = $1",
        row["uid"],
        {"endpoint": endpoint},
        {KEY: world.keyring.seal(pair.key, f"{row['uid']}/{KEY}")},
    )
    await world.watch.once()


def control(world):
    return world.agent.of(world.account.uid).instance


async def test_a_key_is_sealed_for_the_account_and_its_control_database(world, pair):
    await set_key(world, pair)

    (server,), sent = control(world).directory, control(world).client_keys
    account = await world.resource(world.account)
    private = world.keyring.open(account["sealed"]["private_key"], f"{account['uid']}/private_key")
    here = belongs_to_server(account["uid"], UUID(str(control(world).identity)), server.server_id)
    assert server.client_certificate == pair.certificate
    assert open_sealed(private, sent[server.server_id], here).reveal() == pair.key
    assert "PRIVATE KEY" not in f"{server} {sent}"


async def test_a_directory_is_sent_again_only_when_a_key_was_set(world, pair):
    await set_key(world, pair)
    first, revision = control(world).directory, control(world).revision

    await world.watch.once()
    unchanged = control(world).revision
    await set_key(world, pair)

    assert unchanged == revision
    assert control(world).revision > revision
    assert control(world).directory[0].client_key_fingerprint != first[0].client_key_fingerprint


async def test_a_directory_that_another_process_sent_is_not_taken_for_our_own(world):
    await world.watch.once()
    ours, revision = control(world).directory, control(world).revision
    control(world).directory, control(world).revision = (), revision + 1

    await world.watch.once()

    assert control(world).directory == ours


async def test_another_control_database_gets_keys_of_its_own(world, pair):
    await set_key(world, pair)
    before, revision = control(world).client_keys, control(world).revision
    identity = UUID(int=5)
    control(world).identity = identity

    await world.db.execute(
        "update machine set scratch = scratch || $2 where uid = $1",
        world.account.uid,
        {"identity": str(identity)},
    )
    await world.watch.once()

    assert control(world).revision > revision
    assert control(world).client_keys != before


async def test_a_key_without_its_certificate_is_not_sent(world, pair):
    await set_key(world, pair)

    await world.db.execute(
        "update resource set properties = properties #- '{endpoint,clientCertificate}'"
        " where type = 'Microsoft.Sql/servers'"
    )
    await world.watch.once()

    assert control(world).client_keys == {}
    assert not control(world).directory[0].client_certificate


async def test_a_change_of_a_server_is_sent_after_its_operation(world, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await world.put_server(
        "other", endpoint=endpoint, administratorLogin=targets.administrator.name,
        administratorLoginPassword=targets.administrator.password, labels={"tier": "old"},
    )  # fmt: skip
    await world.run()
    await world.db.execute(Q.allow_servers, world.account.uid, [server.uid], "test")
    await world.watch.once()

    async def sent() -> dict[str, str]:
        await world.watch.once()
        return next(each.labels for each in control(world).directory if each.name == "other")

    await world.update(server, labels={"tier": "new"})
    waiting = await sent()
    await world.step(server)
    verifying = (await world.state(server), await sent())
    await world.run()

    assert waiting == {"tier": "old"}
    assert verifying == ("updating", {"tier": "old"})
    assert await sent() == {"tier": "new"}
