"""What the control plane sends as the directory, and when; keys of client certificates are sealed for each account."""

from uuid import UUID

import msgspec
import pytest
import trustme

from fsm.account import S
from muster.core.sealing import belongs_to_server, open_sealed
from tests.support.account_fixture import AccountLifecycles
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
async def lifecycles(db, settings, targets):
    made = AccountLifecycles(db, unhurried(settings), targets, FakeClusters(targets))
    made.account = await made.put_account()
    await made.run()
    assert await made.state(made.account) == S.READY
    return made


async def set_key(lifecycles, pair) -> None:
    """As a PUT stores it."""
    (row,) = await lifecycles.db.fetch(f"select uid, properties {SERVERS}")
    endpoint = row["properties"]["endpoint"] | {"clientCertificate": pair.certificate}
    await lifecycles.db.execute(
        "update resource set properties = properties || $2, sealed = sealed || $3 where uid = $1",
        row["uid"],
        {"endpoint": endpoint},
        {KEY: lifecycles.keyring.seal(pair.key, f"{row['uid']}/{KEY}")},
    )
    await lifecycles.watch.once()


def control(lifecycles):
    return lifecycles.agent.of(lifecycles.account.uid).instance


async def test_a_key_is_sealed_for_the_account_and_its_control_database(lifecycles, pair):
    await set_key(lifecycles, pair)

    (server,), sent = control(lifecycles).directory, control(lifecycles).client_keys
    account = await lifecycles.resource(lifecycles.account)
    private = lifecycles.keyring.open(
        account["sealed"]["private_key"], f"{account['uid']}/private_key"
    )
    here = belongs_to_server(
        account["uid"], UUID(str(control(lifecycles).identity)), server.server_id
    )
    assert server.client_certificate == pair.certificate
    assert open_sealed(private, sent[server.server_id], here).reveal() == pair.key
    assert "PRIVATE KEY" not in f"{server} {sent}"


async def test_a_directory_is_sent_again_only_when_a_key_was_set(lifecycles, pair):
    await set_key(lifecycles, pair)
    first, revision = control(lifecycles).directory, control(lifecycles).revision

    await lifecycles.watch.once()
    unchanged = control(lifecycles).revision
    await set_key(lifecycles, pair)

    assert unchanged == revision
    assert control(lifecycles).revision > revision
    assert (
        control(lifecycles).directory[0].client_key_fingerprint != first[0].client_key_fingerprint
    )


async def test_a_directory_that_another_process_sent_is_not_taken_for_our_own(lifecycles):
    await lifecycles.watch.once()
    ours, revision = control(lifecycles).directory, control(lifecycles).revision
    control(lifecycles).directory, control(lifecycles).revision = (), revision + 1

    await lifecycles.watch.once()

    assert control(lifecycles).directory == ours


async def test_another_control_database_gets_keys_of_its_own(lifecycles, pair):
    await set_key(lifecycles, pair)
    before, revision = control(lifecycles).client_keys, control(lifecycles).revision
    identity = UUID(int=5)
    control(lifecycles).identity = identity

    await lifecycles.db.execute(
        "update machine set scratch = scratch || $2 where uid = $1",
        lifecycles.account.uid,
        {"identity": str(identity)},
    )
    await lifecycles.watch.once()

    assert control(lifecycles).revision > revision
    assert control(lifecycles).client_keys != before


async def test_a_key_without_its_certificate_is_not_sent(lifecycles, pair):
    await set_key(lifecycles, pair)

    await lifecycles.db.execute(
        "update resource set properties = properties #- '{endpoint,clientCertificate}'"
        " where type = 'Microsoft.Sql/servers'"
    )
    await lifecycles.watch.once()

    assert control(lifecycles).client_keys == {}
    assert not control(lifecycles).directory[0].client_certificate


async def test_a_change_of_a_server_is_sent_after_its_operation(lifecycles, targets):
    endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
    server = await lifecycles.put_server(
        "other", endpoint=endpoint, administratorLogin=targets.administrator.name,
        administratorLoginPassword=targets.administrator.password, labels={"tier": "old"},
    )  # fmt: skip
    await lifecycles.run()
    await lifecycles.db.execute(
        Q.allow_servers, lifecycles.account.uid, f'["{server.uid}"]', "test"
    )
    await lifecycles.watch.once()

    async def sent() -> dict[str, str]:
        await lifecycles.watch.once()
        return next(each.labels for each in control(lifecycles).directory if each.name == "other")

    await lifecycles.update(server, labels={"tier": "new"})
    waiting = await sent()
    await lifecycles.step(server)
    verifying = (await lifecycles.state(server), await sent())
    await lifecycles.run()

    assert waiting == {"tier": "old"}
    assert verifying == ("updating", {"tier": "old"})
    assert await sent() == {"tier": "new"}


async def test_labels_of_databases_are_sent_with_their_server(lifecycles):
    (server,) = await lifecycles.db.fetch(f"select * {SERVERS}")
    (database, *_) = await lifecycles.db.fetch(
        "select uid, name from resource where type = 'Microsoft.Sql/servers/databases'"
    )

    async def sent(labels: dict[str, str]) -> object:
        await lifecycles.db.execute(
            "update resource set properties = properties || $2 where uid = $1", database["uid"], {"labels": labels}
        )  # fmt: skip
        await lifecycles.watch.once()
        entry = next(each for each in control(lifecycles).directory if each.name == server["name"])
        return entry.database_labels

    assert await sent({"tier": "gold"}) == {database["name"]: {"tier": "gold"}}
    assert await sent({}) is msgspec.UNSET
