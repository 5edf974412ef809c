"""Real engines and hosts on a real control database: they live, are adopted, fenced and handed over."""

import pytest
import signal

from engine.core.main import SERVICES
from engine.process.exit_codes import Exit
from fsm.launch.protocol import Kind, Reason
from nodeagent.protocol import Drain, Pause, Resume
from tests.support.engine_fixture import Workloads, start_workloads
from tests.support.launching import until

pytestmark = pytest.mark.newest


@pytest.fixture
async def workloads(settings, db, targets, tmp_path):
    async with start_workloads(settings, db, targets, tmp_path) as made:
        yield made


async def test_an_engine_takes_charge_and_beats_on_both_lines(workloads: Workloads):
    engine = await workloads.engine(epoch=7)

    first, row, line = (
        await workloads.read(),
        await workloads.row(engine),
        " ".join(engine.process.argv),
    )

    assert "muster engine" in line and str(workloads.runtime.folder) in line
    assert workloads.account.engine_password not in line + engine.log()
    assert (first.epoch, first.workload_id, first.version) == (7, engine.workload.id, "0.1.0")
    assert row.state == "running" and row.report["pid"] == engine.pid
    await workloads.until(
        engine, lambda told: told["parts"].keys() == {service.name for service in SERVICES}
    )
    await workloads.until(engine, lambda told: told["parts"].get("agreement") == "agrees")

    async def both_went_on() -> bool:
        told, known = await workloads.read(), await workloads.row(engine)
        return told.heartbeat_at > first.heartbeat_at and known.heartbeat_at > row.heartbeat_at

    await until(both_went_on)


async def test_a_host_waits_for_its_engine_and_has_its_share_of_the_capacity(workloads: Workloads):
    host = await workloads.start(Kind.HOST, epoch=1)
    await workloads.until_reports(host, state="starting")
    assert (await workloads.read()).hosts == ()

    engine = await workloads.engine(epoch=1)

    await workloads.until_reports(host, state="live")
    await workloads.until_reports(engine, hosts=[str(host.workload.id)])
    assert [(each.host_id, each.slots) for each in (await workloads.read()).hosts] == [
        (host.workload.id, 50)
    ]


async def test_hosts_outlive_a_killed_core_and_are_adopted_by_the_next_epoch(workloads: Workloads):
    first, host = await workloads.pair(epoch=1)
    before = await workloads.account.fetch(
        "select host_id, pid, epoch, registered_at from jobs_internal.host"
    )

    first.send(signal.SIGKILL)
    await first.ended()
    second = await workloads.engine(epoch=2)

    await workloads.until_reports(second, hosts=[str(host.workload.id)])
    await workloads.until_reports(host, epoch=2)
    after = await workloads.account.fetch(
        "select host_id, pid, epoch, registered_at from jobs_internal.host"
    )
    assert after == before and after[0]["pid"] == host.pid and host.process.alive
    assert [each.adopted_epoch for each in (await workloads.read()).hosts] == [2]


async def test_a_paused_engine_that_wakes_up_later_writes_nothing_and_ends(workloads: Workloads):
    old = await workloads.engine(epoch=1)
    old.send(signal.SIGSTOP)
    new = await workloads.engine(epoch=2)
    seen = await workloads.read()

    old.send(signal.SIGCONT)

    assert await old.ended() == Exit.FENCED
    now = await workloads.read()
    assert (now.epoch, now.generation, now.workload_id) == (2, seen.generation, new.workload.id)
    row = await workloads.row(old)
    assert (row.state, row.reason) == ("failure", Reason.REPORTED)
    assert row.message.startswith("Superseded")


async def test_an_engine_that_comes_too_late_changes_nothing(workloads: Workloads):
    taken = "epoch = 5, workload_id = gen_random_uuid(), started_at = clock_timestamp()"
    await workloads.account.execute(f"update jobs_internal.instance set {taken}")

    late = await workloads.start(Kind.ENGINE, epoch=4)

    assert await late.ended() == Exit.FENCED
    after = await workloads.read()
    assert (after.epoch, after.generation) == (5, 0)


async def test_sigterm_is_a_hand_over_that_leaves_the_hosts_alone(workloads: Workloads):
    engine, host = await workloads.pair(epoch=1)

    engine.send(signal.SIGTERM)

    assert await engine.ended(within=5) == Exit.DONE
    row = await workloads.row(engine)
    assert (row.state, row.result) == ("success", {"handover": True})
    assert host.process.alive and [each.state for each in (await workloads.read()).hosts] == [
        "live"
    ]


async def test_sigint_stops_an_engine_now_and_sends_its_hosts_off(workloads: Workloads):
    engine, host = await workloads.pair(epoch=1)

    engine.send(signal.SIGINT)

    assert await engine.ended(within=10) == Exit.DONE
    assert (await workloads.row(engine)).result == {"handover": False}
    assert await host.ended(within=10) == Exit.DONE
    assert (await workloads.row(host)).result == {"drained": True}
    assert (await workloads.read()).hosts == ()


async def test_an_engine_that_is_no_longer_in_charge_sends_nobody_off(workloads: Workloads):
    old, _ = await workloads.pair(epoch=1)
    old.send(signal.SIGSTOP)
    await workloads.engine(epoch=2)

    old.send(signal.SIGINT)
    old.send(signal.SIGCONT)

    assert await old.ended() in {Exit.DONE, Exit.FENCED}
    assert [each.state for each in (await workloads.read()).hosts] == ["live"]


async def test_sigterm_ends_a_host_and_its_registration(workloads: Workloads):
    engine, host = await workloads.pair(epoch=1)

    host.send(signal.SIGTERM)

    assert await host.ended(within=5) == Exit.DONE
    assert (await workloads.row(host)).result == {"drained": True}
    assert (await workloads.read()).hosts == ()
    await workloads.until_reports(engine, hosts=[])


async def test_who_is_refused_stops_at_once_be_it_engine_or_host(workloads: Workloads):
    engine, host = await workloads.pair(epoch=1)

    await workloads.queue.do("cancelled", engine.workload, reason=Reason.REQUESTED, source="test")
    await workloads.queue.do("cancelled", host.workload, reason=Reason.REQUESTED, source="test")

    assert [await engine.ended(5), await host.ended(5)] == [Exit.REFUSED, Exit.REFUSED]
    assert (await workloads.read()).hosts == ()


async def test_an_epoch_that_did_not_adopt_a_host_ends_it(workloads: Workloads):
    engine, host = await workloads.pair(epoch=1)

    await workloads.account.execute("update jobs_internal.instance set epoch = 9")

    assert [await engine.ended(), await host.ended()] == [Exit.FENCED, Exit.FENCED]


async def test_pause_and_drain_are_obeyed_by_parts_and_hosts(workloads: Workloads):
    engine, host = await workloads.pair(epoch=1)

    await workloads.agent.run(workloads.account, Pause())
    await workloads.until(engine, lambda told: told["parts"].get("scheduler") == "paused", "paused")
    await workloads.until_reports(host, paused=True)
    await workloads.agent.run(workloads.account, Resume())
    await workloads.until(engine, lambda told: told["parts"].get("scheduler") == "idle", "idle")
    await workloads.agent.run(workloads.account, Drain())

    await workloads.until(
        engine, lambda told: told["parts"].get("controller") == "draining", "draining"
    )
    await workloads.until_reports(host, draining=True)
    assert (await workloads.report(engine))["restarts"] == {}


@pytest.mark.parametrize("change", ["min_engine_version = '99.0.0'", "schema_version = 1"])
async def test_versions_that_do_not_fit_are_incompatible_and_change_nothing(
    workloads: Workloads, change
):
    await workloads.account.execute(f"update jobs_internal.instance set {change}")

    engine = await workloads.start(Kind.ENGINE, epoch=1)

    assert await engine.ended() == Exit.INCOMPATIBLE
    row = await workloads.row(engine)
    assert row.state == "failure" and row.message.startswith("Incompatible: engine 0.1.0")
    assert (await workloads.read()).epoch == 0


async def test_a_directory_that_went_back_makes_the_same_process_start_anew_from_the_database(
    workloads: Workloads,
):
    await workloads.account.execute("update jobs_internal.directory_revision set revision = 5")
    engine, host = await workloads.pair(epoch=1)

    await workloads.account.execute("update jobs_internal.directory_revision set revision = 3")

    await workloads.until(engine, lambda told: told["restarts"].get("core") == 1, "restarted")
    await workloads.until_reports(engine, directoryRevision=3, hosts=[str(host.workload.id)])
    said = engine.lines("memory and database disagree: restarting the core")
    assert [line["why"] for line in said] == ["the directory was at 5 and is at 3"]
    assert engine.process.alive and (await workloads.read()).generation == 1


async def test_a_start_file_that_makes_no_sense_is_told_and_ends(workloads: Workloads):
    engine = await workloads.start(Kind.ENGINE, epoch=1, capacity=0)

    assert await engine.ended() == Exit.MISSTARTED
    assert (
        await workloads.row(engine)
    ).message == "InvalidStart: capacity and hosts are at least 1"
