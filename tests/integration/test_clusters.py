"""Embedded clusters: the real ones and the fake one keep the same promises; housekeeping keeps them running."""

import asyncio
import os
import signal
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from fsm.addresses import KnownAddresses
from fsm.clusters import EmbeddedClusters
from fsm.housekeeping import LOCK, Housekeeping
from muster.core.cluster import Cluster
from muster.core.errors import Unavailable
from muster.core.settings import Secret
from muster.roles import fsm
from tests.support.fake_clusters import FakeClusters
from tests.support.lifecycle_fixture import Lifecycles, unhurried


@pytest.fixture
def reachable_folder(tmp_path):
    """PostgreSQL runs as somebody else when we are root."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o711)
    return tmp_path / "clusters"


@pytest.fixture(params=["real", "fake"])
def clusters(request, settings, reachable_folder, targets):
    if request.param == "fake":
        return FakeClusters(targets)
    return EmbeddedClusters(reachable_folder, settings)


async def test_a_cluster_keeps_its_promises(clusters):
    """One life, everything twice: a real initdb is too slow for a test per sentence."""
    uid, login = uuid4(), f"admin_{uuid4().hex[:8]}"
    assert clusters.known() == []
    with pytest.raises(Unavailable):
        await clusters.start(uid)
    for step in (clusters.stop, clusters.destroy):
        await step(uid)  # absence is fine

    for _ in range(2):
        await clusters.create(uid)
    assert clusters.known() == [uid]
    assert not await clusters.running(uid)
    ports = {await clusters.start(uid) for _ in range(2)}
    assert await clusters.running(uid)
    (port,) = ports

    for password in ("first", "pâss'\\wörd"):
        await clusters.set_administrator(uid, login, Secret(password))
        connection = await asyncpg.connect(
            host="127.0.0.1", port=port, user=login, password=password, database="postgres"
        )
        rights = await connection.fetchrow(
            "select rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
            " from pg_roles where rolname = current_user"
        )
        assert tuple(rights) == (False, True, True, False, False)
        await connection.close()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(
            host="127.0.0.1", port=port, user=login, password="first", database="postgres"
        )

    for _ in range(2):
        await clusters.stop(uid)
    assert not await clusters.running(uid)
    assert clusters.known() == [uid]
    for _ in range(2):
        await clusters.destroy(uid)
    assert clusters.known() == []


async def test_a_dead_postmaster_comes_back_and_a_leftover_goes(
    db, settings, reachable_folder, targets
):
    clusters = EmbeddedClusters(reachable_folder, settings)
    patient = replace(settings, lease=timedelta(seconds=60), step_limit=timedelta(seconds=50))
    lifecycles = Lifecycles(db, unhurried(patient), targets, clusters)
    housekeeping = Housekeeping(lifecycles.services)
    server = await lifecycles.put_server()
    await lifecycles.run()
    assert (await lifecycles.operation(server)).status == "Succeeded"
    own = (await lifecycles.resource(server))["observed"]["endpoint"]
    assert (await KnownAddresses(db).current()).embedded == {(own["host"], own["port"])}

    status = await Cluster(reachable_folder / str(server.uid)).status()
    os.kill(status.pid, signal.SIGKILL)
    while await clusters.running(server.uid):
        await asyncio.sleep(0.05)
    await housekeeping.once()
    assert await clusters.running(server.uid)

    # The machine is over, the folder is still there: as if a removal had been cut short.
    await db.execute(
        "update machine set ended_at = clock_timestamp(), due_at = null, state = 'deleted'"
    )
    await housekeeping.once()
    assert clusters.known() == []


async def test_the_role_is_ready_when_its_clusters_answer(
    db, settings, tmp_path, reachable_folder, targets
):
    """A start after a stop: nobody who waits for `ready` meets a server that does not accept connections."""
    patient = replace(
        settings, data_dir=tmp_path, lease=timedelta(seconds=60), step_limit=timedelta(seconds=50)
    )
    clusters = EmbeddedClusters(reachable_folder, patient)
    lifecycles = Lifecycles(db, unhurried(patient), targets, clusters)
    server = await lifecycles.put_server()
    await lifecycles.run()
    await clusters.stop(server.uid)
    stop, running = asyncio.Event(), asyncio.get_running_loop().create_future()

    def ready(_):
        running.set_result(asyncio.ensure_future(clusters.running(server.uid)))

    role = asyncio.ensure_future(fsm.run(patient, stop, ready))
    await asyncio.wait({role, running}, return_when=asyncio.FIRST_COMPLETED)
    try:
        assert await running.result()
    finally:
        stop.set()
        await role
        await clusters.stop(server.uid)


async def test_a_folder_that_nobody_knows_is_left_alone(db, settings, targets):
    clusters = FakeClusters(targets)
    stranger = uuid4()
    await clusters.create(stranger)

    await Housekeeping(Lifecycles(db, settings, targets, clusters).services).once()

    assert clusters.known() == [stranger]


async def test_a_port_that_changed_is_shown(db, settings, targets):
    clusters = FakeClusters(targets)
    lifecycles = Lifecycles(db, unhurried(settings), targets, clusters)
    server = await lifecycles.put_server()
    await lifecycles.run()
    await clusters.stop(server.uid)
    await db.execute(
        "update resource set observed = jsonb_set(observed, '{endpoint,port}', '1') where uid = $1",
        server.uid,
    )

    await Housekeeping(lifecycles.services).once()

    assert (await lifecycles.resource(server))["observed"]["endpoint"]["port"] == targets.port
    assert await clusters.running(server.uid)


async def test_one_process_at_a_time_looks_after_the_clusters(db, settings, targets, database_url):
    clusters = FakeClusters(targets)
    lifecycles = Lifecycles(db, unhurried(settings), targets, clusters)
    server = await lifecycles.put_server()
    await lifecycles.run()
    await clusters.stop(server.uid)
    other = await asyncpg.connect(database_url)
    await other.execute(f"select pg_advisory_lock({LOCK})")

    await Housekeeping(lifecycles.services).once()
    assert not await clusters.running(server.uid)
    await other.close()
    while not await clusters.running(server.uid):
        await Housekeeping(lifecycles.services).once()


async def test_a_cluster_that_does_not_start_holds_nobody_up(db, settings, targets):
    clusters = FakeClusters(targets)
    lifecycles = Lifecycles(db, unhurried(settings), targets, clusters)
    broken, healthy = await lifecycles.put_server(), await lifecycles.put_server()
    await lifecycles.run()
    clusters.made.discard(broken.uid)
    clusters.up.clear()

    await Housekeeping(lifecycles.services).once()

    assert await clusters.running(healthy.uid)


async def test_old_answers_are_forgotten(db, settings, targets):
    await db.execute(
        "insert into answer (caller, request_key, body_digest, outcome, created_at)"
        " values ('a', 'old', '', '{}', now() - interval '25 h'), ('a', 'new', '', '{}', now())"
    )

    await Housekeeping(
        replace(Lifecycles(db, settings, targets, None).services, clusters=None)
    ).once()

    assert [row["request_key"] for row in await db.fetch("select * from answer")] == ["new"]
