"""A launcher with real processes: what it starts, ends, leaves alone and cleans up."""

import asyncio
import signal
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from fsm.launch import claims
from fsm.launch.protocol import Kind, Reason
from fsm.launch.workload import seal_context
from muster.core.errors import Conflict, Unavailable
from muster.core.process import Process
from muster.core.secrets import Keyring
from muster.core.settings import SettingsError
from muster.roles import launcher as role
from tests.support.fake_runtime import bench
from tests.support.launching import QueueFixture, found, launcher, machine, quick, until

pytestmark = pytest.mark.newest


@pytest.fixture
def queue(db, settings, tmp_path) -> QueueFixture:
    return QueueFixture(db, quick(settings, tmp_path / "here"))


async def comes_to(queue: QueueFixture, workload, state: str) -> None:
    async def look() -> bool:
        return await queue.state(workload) == state

    await until(look)


async def gone(queue: QueueFixture, workload) -> None:
    async def look() -> bool:
        return (await queue.get(workload)).gone_at is not None

    await until(look)


async def test_a_life_from_queue_to_result_leaves_only_its_log(queue):
    async with machine(queue) as settings, launcher(settings):
        workload = await queue.enqueue(Kind.COMMAND, how="succeed", epoch=7)
        await gone(queue, workload)

        ended = await queue.get(workload)
        assert (ended.state, ended.result, ended.exit_code) == ("success", {"done": True}, 0)
        assert ended.report["epoch"] == 7
        folder = settings.launcher_dir
        assert [p.name for p in (folder / "workloads").iterdir()] == ["home"]
        log = folder / "logs" / "workloads" / f"{workload.id}.log"
        assert "lives as succeed" in log.read_text()

        await queue.db.execute("delete from workload")
    async with launcher(settings):
        await until(lambda: not log.exists())  # a log lives as long as its row


async def test_secrets_reach_the_process_and_nobody_else(queue):
    id = uuid4()
    sealed = Keyring(queue.settings.keys).seal("s3cret", seal_context(id, "password"))
    async with machine(queue) as settings, launcher(settings):
        workload = await queue.enqueue(id=id, sealed={"password": sealed})
        await comes_to(queue, workload, "running")

        assert (await queue.get(id)).report["secrets"] == ["password"]
        [process] = found(settings.launcher_dir)
        assert "s3cret" not in " ".join(process.argv)


async def test_a_secret_of_another_workload_starts_nothing(queue):
    sealed = Keyring(queue.settings.keys).seal("s3cret", seal_context(uuid4(), "password"))
    async with bench(queue) as made:
        workload = await queue.enqueue(sealed={"password": sealed})
        await made.settle()

        assert made.runtime.started == []
        assert await queue.state(workload) == "claimed"  # until its deadline


async def test_stopping_a_launcher_stops_nothing(queue):
    async with machine(queue) as settings:
        async with launcher(settings):
            workload = await queue.enqueue()
            await comes_to(queue, workload, "running")
        [process] = found(settings.launcher_dir)

        assert process.alive
        assert await queue.state(workload) == "running"


async def test_a_drain_ends_all_and_gives_back_what_only_waited(queue):
    queue.settings = replace(queue.settings, launcher_drain=True, launcher_parallelism=3)
    async with machine(queue) as settings:
        async with launcher(settings):
            polite, rude = await queue.enqueue(how="run"), await queue.enqueue(how="quiet")
            await comes_to(queue, polite, "running")
            await comes_to(queue, rude, "launched")
            for process in found(settings.launcher_dir):
                await until(lambda p=process: "SigCgt:\t0000000000000000" not in status(p))
        assert found(settings.launcher_dir) == []

    assert (await queue.get(polite)).result == {"handed": "over"}
    rude = await queue.get(rude)
    assert (rude.state, rude.reason) == ("cancelled", Reason.DRAINED)
    assert rude.gone_at


async def test_what_was_claimed_and_not_started_goes_back_when_draining(queue):
    async with bench(queue) as made:
        workload = await queue.enqueue()
        await queue.claim(workload, "L1")
        await made.launcher.workload_runner.drain()

    assert await queue.state(workload) == "pending"


async def test_a_hanging_process_is_missed_and_ended(queue):
    queue.settings = replace(queue.settings, workload_silent=timedelta(seconds=1))
    queue.__post_init__()
    async with machine(queue) as settings, launcher(settings):
        workload = await queue.enqueue()
        await comes_to(queue, workload, "running")
        [process] = found(settings.launcher_dir)
        process.send(signal.SIGSTOP)
        await gone(queue, workload)

        assert (await queue.get(workload)).reason == Reason.SILENT
        assert not process.alive


async def test_a_deaf_process_is_ended_all_the_same(queue):
    async with machine(queue) as settings, launcher(settings):
        workload = await queue.enqueue(how="deaf")
        await comes_to(queue, workload, "running")
        await queue.do("cancelled", workload, reason=Reason.REQUESTED, source="test")
        await gone(queue, workload)

        assert (await queue.get(workload)).exit_code == -signal.SIGKILL


async def test_a_successor_starts_when_the_old_one_is_gone(queue):
    async with machine(queue) as settings, launcher(settings):
        old = await queue.enqueue(mutex_key="account")
        await comes_to(queue, old, "running")
        new = await queue.enqueue(mutex_key="account")
        await comes_to(queue, new, "running")

        old, new = await queue.get(old), await queue.get(new)
        assert old.reason == Reason.SUPERSEDED
        assert old.gone_at <= new.claimed_at
        assert len(found(settings.launcher_dir)) == 1


async def test_a_process_that_nobody_knows_is_ended(queue):
    async with machine(queue) as settings:
        async with launcher(settings):
            await comes_to(queue, await queue.enqueue(), "running")
        await queue.db.execute("delete from workload")
        async with launcher(settings):
            await until(lambda: not found(settings.launcher_dir))
            await until(lambda: not list((settings.launcher_dir / "workloads").glob("*.lock")))


async def test_an_outage_of_the_database_ends_no_process(queue):
    async with bench(queue) as made:
        workload = await queue.enqueue()
        await made.settle()

        async def away():
            raise Unavailable("away")

        object.__setattr__(made.launcher.queue_client, "mine", away)
        with pytest.raises(Unavailable):
            await made.launcher.turn(made.group)
        assert workload.id in made.runtime.alive


async def test_a_running_launcher_outlives_the_outage(queue):
    stop = asyncio.Event()
    async with bench(queue) as made:
        turns = 0
        true_turn = made.launcher.turn

        async def turn(group):
            nonlocal turns
            turns += 1
            if turns == 1:
                raise Unavailable("away")
            await true_turn(group)
            stop.set()

        made.launcher.turn = turn
        await asyncio.wait_for(made.launcher.run(stop, lambda: None), 20)
    assert turns == 2


async def test_its_capacity_explains_why_something_waits(queue):
    async with bench(queue) as made:
        made.room = replace(made.room, load=99.0)
        made.launcher.settings = replace(queue.settings, launcher_max_load=4.0)
        workload = await queue.enqueue()
        await made.settle()
        await made.launcher.begin()

        capacity = (await queue.db.fetchrow("select capacity from launcher"))["capacity"]
        assert "load" in capacity["full"]
        assert await queue.state(workload) == "pending"


async def test_a_name_that_is_taken_stops_the_launcher(queue):
    await claims.register(
        queue.db, queue.settings, name="L1", group="default", home=uuid4(), capacity={}, version=""
    )
    with pytest.raises(ExceptionGroup) as refused:
        async with launcher(queue.settings):
            pass
    assert refused.group_contains(Conflict)


async def test_a_launcher_needs_a_folder(settings):
    with pytest.raises(SettingsError, match="LAUNCHER_DIR"):
        await role.run(settings, asyncio.Event(), lambda _: None)


def status(process: Process) -> str:
    try:
        with open(f"/proc/{process.pid}/status") as file:
            return file.read()
    except OSError:
        return ""
