"""Job accounts on the whole stack, with real engines: faults of the control database, deletion."""

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import httpx
import pytest

from engine.process.exit_codes import Exit
from tests.support.accounts import SERVER, account, control, start_control_plane

pytestmark = pytest.mark.newest


@pytest.fixture
def control_plane(settings, targets, tmp_path):
    with start_control_plane(settings, targets, tmp_path / "launcher") as running:
        yield running


def kick_out(control_plane, name):
    """Nobody is connected any more, so the database can be renamed or copied."""
    control_plane.server(f'alter database "{control(name)}" allow_connections false')
    query = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where datname = $1"
    control_plane.server(query, control(name))


def rename(control_plane, old, new):
    control_plane.server(f'alter database "{old}" rename to "{new}"')
    control_plane.server(f'alter database "{new}" allow_connections true')


def test_a_dropped_control_database_disables_and_its_return_heals(control_plane):
    control_plane.create("a")
    first = control_plane.show("a")["instance"]
    kick_out(control_plane, "a")

    control_plane.server(f'alter database "{control("a")}" rename to away')

    control_plane.until(lambda: control_plane.conditions("a") == ["TargetDatabaseNotFound"])
    shown = control_plane.show("a")
    assert (shown["state"], shown["provisioningState"]) == ("Disabled", "Succeeded")
    assert shown["conditions"][0]["since"].endswith("Z")
    rename(control_plane, "away", control("a"))
    control_plane.until_state("a", "Ready")
    assert control_plane.show("a")["instance"]["epoch"] > first["epoch"]
    assert control_plane.conditions("a") == []


def test_a_restored_control_database_starts_nothing_until_it_is_acknowledged(control_plane):
    control_plane.create("a")
    control_plane.process("a").send(signal.SIGKILL)
    control_plane.until(lambda: control_plane.show("a")["instance"]["generation"] == 2)
    control_plane.until_state("a", "Ready")

    control_plane.control("a", "update jobs_internal.instance set epoch = 1, generation = 1")

    control_plane.until(lambda: control_plane.conditions("a") == ["ControlDatabaseRestored"])
    control_plane.until(lambda: control_plane.process("a") is None)
    tried = history(control_plane, "a")
    control_plane.until(
        lambda: len(history(control_plane, "a")) >= len(tried) + 4
    )  # by itself it comes no further
    assert control_plane.conditions("a") == ["ControlDatabaseRestored"]
    assert control_plane.process("a") is None
    assert control_plane.control("a", "select epoch from jobs_internal.instance")[0][0] == 1
    control_plane.acknowledge("a")
    control_plane.until_state("a", "Ready")
    assert control_plane.show("a")["instance"]["epoch"] == 3
    assert control_plane.conditions("a") == []


def test_a_copy_of_the_control_database_starts_nothing_until_it_is_acknowledged(control_plane):
    control_plane.create("a")
    kick_out(control_plane, "a")
    control_plane.server(f'create database copy template "{control("a")}"')
    control_plane.server(f'alter database "{control("a")}" rename to control_original')

    rename(control_plane, "copy", control("a"))

    control_plane.until(lambda: control_plane.conditions("a") == ["ControlDatabaseCloned"])
    control_plane.until(lambda: control_plane.process("a") is None)
    epoch = control_plane.control("a", "select epoch from jobs_internal.instance")[0][0]
    control_plane.acknowledge("a")
    control_plane.until_state("a", "Ready")
    assert control_plane.show("a")["instance"]["epoch"] > epoch


def test_the_accounts_default_credential_is_for_servers_that_name_none(control_plane):
    control_plane.create("a")

    def used() -> list[str | None]:
        rows = control_plane.control(
            "a", "select job_credential from jobs_internal.server_directory"
        )
        return [row[0] for row in rows]

    def patch(path: str, name: str | None) -> None:
        key = "jobCredential" if path == SERVER else "defaultCredential"
        begun = control_plane.http.patch(path, json={"properties": {key: name}}).raise_for_status()
        if path != SERVER:  # a server's change is in the directory only after its operation
            assert control_plane.ended(begun)["status"] == "Succeeded"

    assert used() == [None]
    patch(account("a"), "tenants")
    assert used() == ["tenants"]
    patch(SERVER, "its own")
    control_plane.until(lambda: used() == ["its own"])
    patch(SERVER, None)
    control_plane.until(lambda: used() == ["tenants"])
    patch(account("a"), None)
    assert used() == [None]

    refused = control_plane.http.patch(
        account("a"), json={"properties": {"defaultCredential": "a/b"}}
    )

    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert refused.json()["error"]["target"] == "properties.defaultCredential"


def test_an_engine_that_hangs_is_replaced_and_ends_itself_when_it_goes_on(
    settings, targets, tmp_path
):
    patient = dict(
        workload_silent=timedelta(seconds=3), workload_stop_grace=timedelta(seconds=60),
        workload_mutex_wait=timedelta(seconds=1),
    )  # fmt: skip
    with start_control_plane(settings, targets, tmp_path / "launcher", **patient) as control_plane:
        control_plane.create("a")
        old = control_plane.process("a")
        old.send(signal.SIGSTOP)
        control_plane.until(lambda: control_plane.show("a")["instance"]["generation"] == 2)
        control_plane.until_state("a", "Ready")
        assert old.alive

        old.send(signal.SIGCONT)

        control_plane.until(lambda: control_plane.exit_code(epoch=1) is not None)
        assert (
            control_plane.exit_code(epoch=1) == Exit.LOST
        )  # for longer than its patience nobody heard it
        row = control_plane.control("a", "select epoch, generation from jobs_internal.instance")[0]
        assert tuple(row) == (2, 2)
        assert control_plane.show("a")["state"] == "Ready"


def test_a_killed_engine_is_replaced_and_its_host_stays(control_plane):
    control_plane.create("a")
    control_plane.until(lambda: control_plane.process("a", "host"))
    host = control_plane.process("a", "host")

    control_plane.process("a").send(signal.SIGKILL)

    began = time.monotonic()
    control_plane.until(lambda: control_plane.show("a")["instance"]["generation"] == 2, within=20)
    control_plane.until_state("a", "Ready")
    assert time.monotonic() - began < 20
    assert control_plane.process("a", "host") == host


@pytest.mark.parametrize("when", ["creation", "update", "recovery"])
def test_a_delete_during_other_work_leaves_nothing(control_plane, when):
    control_plane.database("a")
    begun = control_plane.begin("a")
    uid = control_plane.uid("a")
    if when == "creation":
        control_plane.until(
            lambda: control_plane.metadata("select from workload where state <> 'pending'")
        )
    else:
        control_plane.until_state("a", "Ready")
    if when == "update":
        begun = control_plane.resize("a", "JA200")
    if when == "recovery":
        control_plane.process("a").send(signal.SIGKILL)
        control_plane.until(lambda: control_plane.show("a")["state"] == "Disabled")

    control_plane.delete("a")

    control_plane.until(lambda: control_plane.gone("a"))
    control_plane.nothing_left(uid)
    if when != "recovery":
        status = control_plane.operation(begun)
        assert (status["status"], status["error"]["code"]) == ("Canceled", "OperationInterrupted")


def test_two_deletes_at_once_are_one(control_plane):
    control_plane.create("a")
    uid = control_plane.uid("a")
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(target=lambda: answers.append(control_plane.delete("a"))) for _ in range(2)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [each.status_code for each in answers] == [202, 202]
    assert len({each.headers["azure-asyncoperation"].partition("?")[0] for each in answers}) == 1
    control_plane.until(lambda: control_plane.gone("a"))
    control_plane.nothing_left(uid)


def test_the_launcher_is_killed_and_three_engines_keep_their_pids(settings, targets, tmp_path):
    folder = tmp_path / "launcher"
    names = ("a", "b", "c")
    with start_control_plane(
        settings, targets, folder, own_launcher=False, launcher_drain=False
    ) as control_plane:
        environment = {"PATH": os.environ["PATH"], **control_plane.plane.settings.environ()}
        command = [sys.executable, "-P", "-m", "muster", "launcher"]
        first = subprocess.Popen(command, env=environment, cwd=tmp_path)
        second = None
        try:
            control_plane.create(*names)
            before = {name: control_plane.process(name).pid for name in names}
            beat = control_plane.metadata("select heartbeat_at from launcher")[0][0]

            first.kill()
            first.wait()
            second = subprocess.Popen(command, env=environment, cwd=tmp_path)

            control_plane.until(
                lambda: control_plane.metadata("select heartbeat_at from launcher")[0][0] > beat
            )
            assert {name: control_plane.process(name).pid for name in names} == before
            control_plane.until(lambda: control_plane.process("a", "host"))
            victim = control_plane.process("a", "host")
            victim.send(signal.SIGKILL)  # whose end only a launcher that watches can see
            control_plane.until(
                lambda: control_plane.metadata(
                    "select from workload where kind = 'host' and exit_code is null and gone_at is not null"
                )
            )
            others = ("b", "c")  # the account of the lost host gets a new engine with a new host
            assert {name: control_plane.process(name).pid for name in others} == {
                name: before[name] for name in others
            }
            assert {control_plane.show(name)["state"] for name in others} == {"Ready"}
            assert {control_plane.show(name)["instance"]["generation"] for name in names} == {1}
        finally:
            for process in (first, second):
                if process is not None:
                    process.kill()
                    process.wait()


def test_two_accounts_on_one_server_are_blind_to_each_other(control_plane):
    control_plane.create("a", "b")
    ours, theirs = (f"muster_{control_plane.uid(name).hex}" for name in "ab")

    for role in ("agent", "engine", "owner", "admin"):
        member = "select pg_has_role($1, oid, 'member') from pg_roles where rolname like $2"
        rows = control_plane.server(member, f"{ours}_{role}", f"{theirs}%")
        assert {row[0] for row in rows} == {False}
    seen = control_plane.control(
        "b",
        "select n.nspname, has_schema_privilege($1, n.oid, 'usage') from pg_namespace n"
        " where nspname in ('jobs', 'jobs_internal')",
        f"{ours}_agent",
    )
    assert {row[1] for row in seen} == {False}


def history(control_plane, name):
    return control_plane.get(f"{account(name)}/history")["value"]
