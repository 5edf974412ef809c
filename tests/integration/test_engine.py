"""Real engines and hosts on a real control database: they live, are adopted, fenced and handed over."""

import pytest
import signal

from engine.core.main import SERVICES
from engine.process.exit_codes import Exit
from fsm.launch.protocol import Kind, Reason
from nodeagent.protocol import Drain, Pause, Resume
from tests.support.engine_fixture import World, world
from tests.support.launching import until

pytestmark = pytest.mark.newest


@pytest.fixture
async def here(settings, db, targets, tmp_path):
    async with world(settings, db, targets, tmp_path) as made:
        yield made


async def test_an_engine_takes_charge_and_beats_on_both_lines(here: World):
    engine = await here.engine(epoch=7)

    first, row, line = await here.read(), await here.row(engine), " ".join(engine.process.argv)

    assert "muster engine" in line and str(here.runtime.folder) in line
    assert here.account.engine_password not in line + engine.log()
    assert (first.epoch, first.workload_id, first.version) == (7, engine.workload.id, "0.1.0")
    assert row.state == "running" and row.report["pid"] == engine.pid
    await here.until(
        engine, lambda told: told["parts"].keys() == {service.name for service in SERVICES}
    )
    await here.until(engine, lambda told: told["parts"].get("agreement") == "agrees")

    async def both_went_on() -> bool:
        told, known = await here.read(), await here.row(engine)
        return told.heartbeat_at > first.heartbeat_at and known.heartbeat_at > row.heartbeat_at

    await until(both_went_on)


async def test_a_host_waits_for_its_engine_and_has_its_share_of_the_capacity(here: World):
    host = await here.start(Kind.HOST, epoch=1)
    await here.until_reports(host, state="starting")
    assert (await here.read()).hosts == ()

    engine = await here.engine(epoch=1)

    await here.until_reports(host, state="live")
    await here.until_reports(engine, hosts=[str(host.workload.id)])
    assert [(each.host_id, each.slots) for each in (await here.read()).hosts] == [
        (host.workload.id, 50)
    ]


async def test_hosts_outlive_a_killed_core_and_are_adopted_by_the_next_epoch(here: World):
    first, host = await here.pair(epoch=1)
    before = await here.account.fetch(
        "select host_id, pid, epoch, registered_at from jobs_internal.host"
    )

    first.send(signal.SIGKILL)
    await first.ended()
    second = await here.engine(epoch=2)

    await here.until_reports(second, hosts=[str(host.workload.id)])
    await here.until_reports(host, epoch=2)
    after = await here.account.fetch(
        "select host_id, pid, epoch, registered_at from jobs_internal.host"
    )
    assert after == before and after[0]["pid"] == host.pid and host.process.alive
    assert [each.adopted_epoch for each in (await here.read()).hosts] == [2]


async def test_a_paused_engine_that_wakes_up_later_writes_nothing_and_ends(here: World):
    old = await here.engine(epoch=1)
    old.send(signal.SIGSTOP)
    new = await here.engine(epoch=2)
    seen = await here.read()

    old.send(signal.SIGCONT)

    assert await old.ended() == Exit.FENCED
    now = await here.read()
    assert (now.epoch, now.generation, now.workload_id) == (2, seen.generation, new.workload.id)
    row = await here.row(old)
    assert (row.state, row.reason) == ("failure", Reason.REPORTED)
    assert row.message.startswith("Superseded")


async def test_an_engine_that_comes_too_late_changes_nothing(here: World):
    taken = "epoch = 5, workload_id = gen_random_uuid(), started_at = clock_timestamp()"
    await here.account.execute(f"update jobs_internal.instance set {taken}")

    late = await here.start(Kind.ENGINE, epoch=4)

    assert await late.ended() == Exit.FENCED
    after = await here.read()
    assert (after.epoch, after.generation) == (5, 0)


async def test_sigterm_is_a_hand_over_that_leaves_the_hosts_alone(here: World):
    engine, host = await here.pair(epoch=1)

    engine.send(signal.SIGTERM)

    assert await engine.ended(within=5) == Exit.DONE
    row = await here.row(engine)
    assert (row.state, row.result) == ("success", {"handover": True})
    assert host.process.alive and [each.state for each in (await here.read()).hosts] == ["live"]


async def test_sigint_stops_an_engine_now_and_sends_its_hosts_off(here: World):
    engine, host = await here.pair(epoch=1)

    engine.send(signal.SIGINT)

    assert await engine.ended(within=10) == Exit.DONE
    assert (await here.row(engine)).result == {"handover": False}
    assert await host.ended(within=10) == Exit.DONE
    assert (await here.row(host)).result == {"drained": True}
    assert (await here.read()).hosts == ()


async def test_an_engine_that_is_no_longer_in_charge_sends_nobody_off(here: World):
    old, _ = await here.pair(epoch=1)
    old.send(signal.SIGSTOP)
    await here.engine(epoch=2)

    old.send(signal.SIGINT)
    old.send(signal.SIGCONT)

    assert await old.ended() in {Exit.DONE, Exit.FENCED}
    assert [each.state for each in (await here.read()).hosts] == ["live"]


async def test_sigterm_ends_a_host_and_its_registration(here: World):
    engine, host = await here.pair(epoch=1)

    host.send(signal.SIGTERM)

    assert await host.ended(within=5) == Exit.DONE
    assert (await here.row(host)).result == {"drained": True}
    assert (await here.read()).hosts == ()
    await here.until_reports(engine, hosts=[])


async def test_who_is_refused_stops_at_once_be_it_engine_or_host(here: World):
    engine, host = await here.pair(epoch=1)

    await here.yard.do("cancelled", engine.workload, reason=Reason.REQUESTED, source="test")
    await here.yard.do("cancelled", host.workload, reason=Reason.REQUESTED, source="test")

    assert [await engine.ended(5), await host.ended(5)] == [Exit.REFUSED, Exit.REFUSED]
    assert (await here.read()).hosts == ()


async def test_an_epoch_that_did_not_adopt_a_host_ends_it(here: World):
    engine, host = await here.pair(epoch=1)

    await here.account.execute("update jobs_internal.instance set epoch = 9")

    assert [await engine.ended(), await host.ended()] == [Exit.FENCED, Exit.FENCED]


async def test_pause_and_drain_are_obeyed_by_parts_and_hosts(here: World):
    engine, host = await here.pair(epoch=1)

    await here.agent.run(here.account, Pause())
    await here.until(engine, lambda told: told["parts"].get("scheduler") == "paused", "paused")
    await here.until_reports(host, paused=True)
    await here.agent.run(here.account, Resume())
    await here.until(engine, lambda told: told["parts"].get("scheduler") == "idle", "idle")
    await here.agent.run(here.account, Drain())

    await here.until(engine, lambda told: told["parts"].get("controller") == "draining", "draining")
    await here.until_reports(host, draining=True)
    assert (await here.report(engine))["restarts"] == {}


@pytest.mark.parametrize("change", ["min_engine_version = '99.0.0'", "schema_version = 1"])
async def test_versions_that_do_not_fit_are_incompatible_and_change_nothing(here: World, change):
    await here.account.execute(f"update jobs_internal.instance set {change}")

    engine = await here.start(Kind.ENGINE, epoch=1)

    assert await engine.ended() == Exit.INCOMPATIBLE
    row = await here.row(engine)
    assert row.state == "failure" and row.message.startswith("Incompatible: engine 0.1.0")
    assert (await here.read()).epoch == 0


async def test_a_directory_that_went_back_makes_the_same_process_start_anew_from_the_database(
    here: World,
):
    await here.account.execute("update jobs_internal.directory_revision set revision = 5")
    engine, host = await here.pair(epoch=1)

    await here.account.execute("update jobs_internal.directory_revision set revision = 3")

    await here.until(engine, lambda told: told["restarts"].get("core") == 1, "restarted")
    await here.until_reports(engine, directoryRevision=3, hosts=[str(host.workload.id)])
    said = engine.lines("memory and database disagree: restarting the core")
    assert [line["why"] for line in said] == ["the directory was at 5 and is at 3"]
    assert engine.process.alive and (await here.read()).generation == 1


async def test_a_start_file_that_makes_no_sense_is_told_and_ends(here: World):
    engine = await here.start(Kind.ENGINE, epoch=1, capacity=0)

    assert await engine.ended() == Exit.MISSTARTED
    assert (await here.row(engine)).message == "InvalidStart: capacity and hosts are at least 1"
