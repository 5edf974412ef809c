"""Lines that break, epochs that go stale in the middle of a write, memory that is wrong."""

import asyncio
import contextlib
import signal
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from engine.db import membership
from engine.core.main import SERVICES, Core
from engine.process.exit_codes import Exit, Fenced, HostEnded
from engine.process.lease import Lease
from engine.db.control_connection import ControlConnection
from engine.db.control_db import Q, ControlDatabase
from fsm.launch.protocol import Kind
from muster.core.clock import Clock
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from tests.support.engine_fixture import bootstrap, start_workloads
from tests.support.launching import until
from tests.support.tcp_proxy import proxy_to

pytestmark = pytest.mark.newest


@pytest.fixture
async def open_store(account):
    opened = []

    def one(epoch: int, **more) -> ControlDatabase:
        opened.append(ControlDatabase(bootstrap(account, epoch, **more)))
        return opened[-1]

    yield one
    for store in opened:
        await store.close()


@contextlib.asynccontextmanager
async def living(account, store: ControlDatabase, epoch: int, **more):
    """A core inside this process, its parts running."""
    clock = Clock()
    core = Core(
        bootstrap(account, epoch, **more), store, Lease("control", timedelta(60), clock), clock
    )
    stop = asyncio.Event()
    task = asyncio.create_task(core.run(stop))
    try:
        await until(lambda: len(core.hosting.services) == len(SERVICES) or task.done())
        yield core, task
    finally:
        stop.set()
        with contextlib.suppress(Fenced):
            await asyncio.wait_for(task, 5)


async def in_charge(store: ControlDatabase) -> ControlDatabase:
    assert await membership.acquire_leadership(store, uuid4())
    return store


# The fence


async def test_a_writer_that_is_stopped_inside_its_transaction_can_not_commit_under_a_newer_epoch(
    account, open_store
):
    old, new = await in_charge(open_store(1)), open_store(2)
    host = uuid4()
    await membership.register(old, host, 10)

    with pytest.raises((Unavailable, Fenced)):
        async with old.writing() as tx:
            await tx.execute(Q.end_host, host)
            assert await membership.acquire_leadership(new, uuid4())

    assert await account.fetch("select state, adopted_epoch from jobs_internal.host") == [
        ("live", 2)
    ]


async def test_a_stale_epoch_can_neither_begin_a_write_nor_beat_nor_adopt(open_store):
    old = await in_charge(open_store(1))
    await in_charge(open_store(2))

    for attempt in (membership.heartbeat, membership.hosts, membership.look):
        with pytest.raises(Fenced):
            await attempt(old)
    with pytest.raises(Fenced):
        async with old.writing():
            raise AssertionError("a stale writer got in")


async def test_a_write_that_forgets_itself_is_ended_by_the_server(open_store, monkeypatch):
    store = await in_charge(open_store(1))

    async with store.calling() as tx:
        names = ("idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout")
        limits = [await tx.fetchval("select current_setting($1)", name) for name in names]

    assert limits == ["10s", "10s", "5s"]


async def test_every_session_of_the_engine_has_the_planner_switches(open_store):
    store = await in_charge(open_store(1))
    switches = "select current_setting('enable_seqscan'), current_setting('jit')"

    async with store.calling() as tx:
        in_transaction = await tx.fetchrow(switches)
    connection = ControlConnection(store)
    (in_session,) = await connection.fetch(switches)
    connection.disconnect()

    assert tuple(in_transaction) == tuple(in_session) == ("off", "off")


async def test_every_query_of_the_engine_compiles_for_its_role(account):
    connection = await account.connect("engine")
    try:
        for name, text in Q.items():
            assert text.startswith("-- "), name
            await connection.prepare(text)
    finally:
        await connection.close()


# Who may not come in


async def test_a_password_that_is_not_accepted_and_a_database_that_is_gone_are_told_apart(account):
    good = bootstrap(account, 1)
    wrong = ControlDatabase(replace(good, password=type(good.password)("wrong")))
    gone = ControlDatabase(bootstrap(account, 1, database="no_such_database"))

    with pytest.raises(InvalidRequest) as refused:
        await membership.acquire_leadership(wrong, uuid4())
    with pytest.raises(NotFound) as missing:
        await membership.acquire_leadership(gone, uuid4())

    assert refused.value.code == "TargetAuthenticationFailed"
    assert missing.value.code == "TargetDatabaseNotFound"


async def test_an_ended_registration_does_not_come_back(open_store):
    store, host = await in_charge(open_store(1)), uuid4()
    await membership.register(store, host, 10)
    await membership.end_host(store, host)

    for attempt in (
        membership.register(store, host, 10),
        membership.host_heartbeat(store, host, 0),
    ):
        with pytest.raises(HostEnded):
            await attempt


# Memory and database


async def test_a_host_that_only_memory_knows_makes_the_core_start_anew_from_the_database(
    account, open_store, monkeypatch
):
    monkeypatch.setattr(
        "engine.core.communicator.Communicator.run_once", lambda self: asyncio.sleep(0)
    )
    store = open_store(1)
    async with living(account, store, 1) as (core, _):
        real = uuid4()
        await membership.register(store, real, 10)

        await until(lambda: core.hosting.restarts["core"] == 1)

        await until(
            lambda: core.hosting.cluster_state and core.hosting.cluster_state.hosts.keys() == {real}
        )


async def test_an_upgraded_schema_makes_the_core_start_anew(account, open_store):
    async with living(account, open_store(1), 1) as (core, task):
        await account.execute("update jobs_internal.instance set schema_version = 99")

        await until(lambda: core.hosting.restarts["core"] == 1)
        await until(lambda: core.hosting.cluster_state.beat.schema_version == 99)
        assert not task.done()


async def test_a_lost_host_is_seen_off_and_a_living_one_is_not(account, open_store):
    store = await in_charge(open_store(1))
    lost, alive = uuid4(), uuid4()
    await membership.register(store, lost, 10)
    await membership.register(store, alive, 10)

    async with living(account, open_store(2), 2, hostPatience=0.3):

        async def seen_off() -> bool:
            await membership.host_heartbeat(store, alive, 0)
            rows = await account.fetch("select host_id, state from jobs_internal.host")
            return dict(rows)[lost] == "gone"

        await until(seen_off)
        rows = dict(await account.fetch("select host_id, state from jobs_internal.host"))

    assert rows == {lost: "gone", alive: "live"}


async def test_an_answer_that_was_lost_on_its_way_does_not_make_an_engine_give_up(
    account, open_store
):
    store, real = open_store(1), membership.acquire_leadership
    answers = []

    async def cut_off(store, workload):
        answers.append(await real(store, workload))
        if len(answers) == 1:
            raise Unavailable("The connection broke after the commit.")
        return answers[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(membership, "acquire_leadership", cut_off)
        async with living(account, store, 1) as (_, task):
            assert answers == [True, False] and not task.done()


async def test_a_part_that_crashes_and_one_that_hangs_are_started_anew_beside_the_others(
    account, open_store, monkeypatch
):
    acts = {"scheduler": ["crash", "crash"], "controller": ["hang"]}

    async def run_once(service) -> None:
        match acts[service.name].pop(0) if acts[service.name] else "idle":
            case "crash":
                raise RuntimeError("a mistake of ours")
            case "hang":
                await asyncio.Event().wait()

    monkeypatch.setattr("engine.core.scheduler.Scheduler.run_once", run_once)
    monkeypatch.setattr("engine.core.controller.Controller.run_once", run_once)
    async with living(account, open_store(1), 1, partPatience=1.0) as (core, task):
        restarts = core.hosting.restarts  # a busy machine may make another part seem to hang
        await until(lambda: (restarts["scheduler"], restarts["controller"]) == (2, 1))
        await until(lambda: len(core.hosting.services) == len(SERVICES))

        assert not task.done() and core.hosting.restarts["core"] == 0


# Lines that break


async def test_a_server_that_hangs_is_hung_up_on_and_reached_again(account, monkeypatch):
    monkeypatch.setattr("engine.db.control_db.TRANSACTION_TIMEOUT", 0.3)
    async with proxy_to(account.targets.port) as proxy:
        endpoint = {"host": "127.0.0.1", "port": proxy.port, "sslMode": "disable"}
        store = await in_charge(ControlDatabase(bootstrap(account, 1, endpoint=endpoint)))
        try:
            proxy.hold()
            with pytest.raises(Unavailable):
                async with asyncio.timeout(5):
                    await membership.heartbeat(store)
            proxy.restore()

            await membership.heartbeat(store)
        finally:
            await store.close()


async def test_a_control_database_that_is_away_is_no_target_that_is(account):
    """Whoever hears of it waits for it, and does not hold it against the target that is being worked on."""
    async with proxy_to(account.targets.port) as proxy:
        endpoint = {"host": "127.0.0.1", "port": proxy.port, "sslMode": "disable"}
        store = await in_charge(ControlDatabase(bootstrap(account, 1, endpoint=endpoint)))
        await store.close()
        talk = ControlConnection(store)
        proxy.cut()
        for ask in (membership.heartbeat(store), talk.value("select 1"), store.listen((), print)):
            with pytest.raises(Unavailable) as away:
                await ask
            assert away.value.code == "ControlDatabaseUnavailable"


async def test_both_lines_may_break_for_a_while_and_everything_goes_on(
    settings, db, targets, tmp_path
):
    async with start_workloads(settings, db, targets, tmp_path) as workloads:
        engine, host = await workloads.pair(epoch=1)

        for proxy in (workloads.to_database, workloads.to_api):
            proxy.cut()
        await until(
            lambda: engine.lines("service waits") and host.lines("waiting for the control database")
        )
        before = await workloads.read()
        for proxy in (workloads.to_api, workloads.to_database):
            proxy.restore()

        async def gone_on() -> bool:
            now = await workloads.read()
            return now.heartbeat_at > before.heartbeat_at and (
                now.hosts[0].heartbeat_at > before.hosts[0].heartbeat_at
            )

        await until(gone_on)
        await until(lambda: engine.lines("service recovered"))
        assert engine.process.alive and host.process.alive
        assert (await workloads.report(engine))["restarts"] == {}


async def test_a_host_lives_through_the_loss_of_its_core_and_of_the_database_and_is_then_adopted(
    settings, db, targets, tmp_path
):
    async with start_workloads(settings, db, targets, tmp_path) as workloads:
        first, host = await workloads.pair(epoch=1)

        workloads.to_database.cut()
        first.send(signal.SIGKILL)
        await first.ended()
        workloads.to_database.restore()
        second = await workloads.engine(epoch=2)

        await workloads.until_reports(second, hosts=[str(host.workload.id)])
        await workloads.until_reports(host, epoch=2)
        assert host.process.alive


async def test_whoever_is_not_heard_for_all_of_its_patience_ends_itself(
    settings, db, targets, tmp_path
):
    patience = {"host_patience": timedelta(seconds=1), "workload_silent": timedelta(seconds=1)}
    async with start_workloads(settings, db, targets, tmp_path, **patience) as workloads:
        engine, host = await workloads.pair(epoch=1)

        workloads.to_api.cut()

        assert [await engine.ended(5), await host.ended(5)] == [Exit.LOST, Exit.LOST]
        assert (await workloads.read()).hosts == ()


async def test_a_control_database_that_stays_away_is_told_to_the_control_plane(
    settings, db, targets, tmp_path
):
    async with start_workloads(settings, db, targets, tmp_path, hostPatience=0.5) as workloads:
        workloads.to_database.cut()

        engine = await workloads.start(Kind.ENGINE, epoch=1)

        assert await engine.ended() == Exit.LOST
        assert (
            await workloads.row(engine)
        ).message == "ControlDatabaseUnavailable: unavailable for 0.5 s."
