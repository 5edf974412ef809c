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
from tests.support.accounts import SERVER, account, control, stack

pytestmark = pytest.mark.newest


@pytest.fixture
def here(settings, targets, tmp_path):
    with stack(settings, targets, tmp_path / "launcher") as running:
        yield running


def kick_out(here, name):
    """Nobody is connected any more, so the database can be renamed or copied."""
    here.server(f'alter database "{control(name)}" allow_connections false')
    query = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where datname = $1"
    here.server(query, control(name))


def rename(here, old, new):
    here.server(f'alter database "{old}" rename to "{new}"')
    here.server(f'alter database "{new}" allow_connections true')


def test_a_dropped_control_database_disables_and_its_return_heals(here):
    here.create("a")
    first = here.show("a")["instance"]
    kick_out(here, "a")

    here.server(f'alter database "{control("a")}" rename to away')

    here.until(lambda: here.conditions("a") == ["TargetDatabaseNotFound"])
    shown = here.show("a")
    assert (shown["state"], shown["provisioningState"]) == ("Disabled", "Succeeded")
    assert shown["conditions"][0]["since"].endswith("Z")
    rename(here, "away", control("a"))
    here.until_state("a", "Ready")
    assert here.show("a")["instance"]["epoch"] > first["epoch"]
    assert here.conditions("a") == []


def test_a_restored_control_database_starts_nothing_until_it_is_acknowledged(here):
    here.create("a")
    here.process("a").send(signal.SIGKILL)
    here.until(lambda: here.show("a")["instance"]["generation"] == 2)
    here.until_state("a", "Ready")

    here.control("a", "update jobs_internal.instance set epoch = 1, generation = 1")

    here.until(lambda: here.conditions("a") == ["ControlDatabaseRestored"])
    here.until(lambda: here.process("a") is None)
    tried = history(here, "a")
    here.until(lambda: len(history(here, "a")) >= len(tried) + 4)  # by itself it comes no further
    assert here.conditions("a") == ["ControlDatabaseRestored"]
    assert here.process("a") is None
    assert here.control("a", "select epoch from jobs_internal.instance")[0][0] == 1
    here.acknowledge("a")
    here.until_state("a", "Ready")
    assert here.show("a")["instance"]["epoch"] == 3
    assert here.conditions("a") == []


def test_a_copy_of_the_control_database_starts_nothing_until_it_is_acknowledged(here):
    here.create("a")
    kick_out(here, "a")
    here.server(f'create database copy template "{control("a")}"')
    here.server(f'alter database "{control("a")}" rename to control_original')

    rename(here, "copy", control("a"))

    here.until(lambda: here.conditions("a") == ["ControlDatabaseCloned"])
    here.until(lambda: here.process("a") is None)
    epoch = here.control("a", "select epoch from jobs_internal.instance")[0][0]
    here.acknowledge("a")
    here.until_state("a", "Ready")
    assert here.show("a")["instance"]["epoch"] > epoch


def test_the_accounts_default_credential_is_for_servers_that_name_none(here):
    here.create("a")

    def used() -> list[str | None]:
        rows = here.control("a", "select job_credential from jobs_internal.server_directory")
        return [row[0] for row in rows]

    def patch(path: str, name: str | None) -> None:
        key = "jobCredential" if path == SERVER else "defaultCredential"
        begun = here.http.patch(path, json={"properties": {key: name}}).raise_for_status()
        if path != SERVER:  # a server's change is in the directory only after its operation
            assert here.ended(begun)["status"] == "Succeeded"

    assert used() == [None]
    patch(account("a"), "tenants")
    assert used() == ["tenants"]
    patch(SERVER, "its own")
    here.until(lambda: used() == ["its own"])
    patch(SERVER, None)
    here.until(lambda: used() == ["tenants"])
    patch(account("a"), None)
    assert used() == [None]

    refused = here.http.patch(account("a"), json={"properties": {"defaultCredential": "a/b"}})

    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert refused.json()["error"]["target"] == "properties.defaultCredential"


def test_an_engine_that_hangs_is_replaced_and_ends_itself_when_it_goes_on(
    settings, targets, tmp_path
):
    patient = dict(
        workload_silent=timedelta(seconds=3), workload_stop_grace=timedelta(seconds=60),
        workload_mutex_wait=timedelta(seconds=1),
    )  # fmt: skip
    with stack(settings, targets, tmp_path / "launcher", **patient) as here:
        here.create("a")
        old = here.process("a")
        old.send(signal.SIGSTOP)
        here.until(lambda: here.show("a")["instance"]["generation"] == 2)
        here.until_state("a", "Ready")
        assert old.alive

        old.send(signal.SIGCONT)

        here.until(lambda: here.exit_code(epoch=1) is not None)
        assert here.exit_code(epoch=1) == Exit.LOST  # for longer than its patience nobody heard it
        row = here.control("a", "select epoch, generation from jobs_internal.instance")[0]
        assert tuple(row) == (2, 2)
        assert here.show("a")["state"] == "Ready"


def test_a_killed_engine_is_replaced_and_its_host_stays(here):
    here.create("a")
    here.until(lambda: here.process("a", "host"))
    host = here.process("a", "host")

    here.process("a").send(signal.SIGKILL)

    began = time.monotonic()
    here.until(lambda: here.show("a")["instance"]["generation"] == 2, within=20)
    here.until_state("a", "Ready")
    assert time.monotonic() - began < 20
    assert here.process("a", "host") == host


@pytest.mark.parametrize("when", ["creation", "update", "recovery"])
def test_a_delete_during_other_work_leaves_nothing(here, when):
    here.database("a")
    begun = here.begin("a")
    uid = here.uid("a")
    if when == "creation":
        here.until(lambda: here.metadata("select from workload where state <> 'pending'"))
    else:
        here.until_state("a", "Ready")
    if when == "update":
        begun = here.resize("a", "JA200")
    if when == "recovery":
        here.process("a").send(signal.SIGKILL)
        here.until(lambda: here.show("a")["state"] == "Disabled")

    here.delete("a")

    here.until(lambda: here.gone("a"))
    here.nothing_left(uid)
    if when != "recovery":
        status = here.operation(begun)
        assert (status["status"], status["error"]["code"]) == ("Canceled", "OperationInterrupted")


def test_two_deletes_at_once_are_one(here):
    here.create("a")
    uid = here.uid("a")
    answers: list[httpx.Response] = []
    threads = [threading.Thread(target=lambda: answers.append(here.delete("a"))) for _ in range(2)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [each.status_code for each in answers] == [202, 202]
    assert len({each.headers["azure-asyncoperation"].partition("?")[0] for each in answers}) == 1
    here.until(lambda: here.gone("a"))
    here.nothing_left(uid)


def test_the_launcher_is_killed_and_three_engines_keep_their_pids(settings, targets, tmp_path):
    folder = tmp_path / "launcher"
    names = ("a", "b", "c")
    with stack(settings, targets, folder, own_launcher=False, launcher_drain=False) as here:
        environment = {"PATH": os.environ["PATH"], **here.plane.settings.environ()}
        command = [sys.executable, "-P", "-m", "muster", "launcher"]
        first = subprocess.Popen(command, env=environment, cwd=tmp_path)
        second = None
        try:
            here.create(*names)
            before = {name: here.process(name).pid for name in names}
            beat = here.metadata("select heartbeat_at from launcher")[0][0]

            first.kill()
            first.wait()
            second = subprocess.Popen(command, env=environment, cwd=tmp_path)

            here.until(lambda: here.metadata("select heartbeat_at from launcher")[0][0] > beat)
            assert {name: here.process(name).pid for name in names} == before
            here.until(lambda: here.process("a", "host"))
            victim = here.process("a", "host")
            victim.send(signal.SIGKILL)  # whose end only a launcher that watches can see
            here.until(
                lambda: here.metadata(
                    "select from workload where kind = 'host' and exit_code is null and gone_at is not null"
                )
            )
            others = ("b", "c")  # the account of the lost host gets a new engine with a new host
            assert {name: here.process(name).pid for name in others} == {
                name: before[name] for name in others
            }
            assert {here.show(name)["state"] for name in others} == {"Ready"}
            assert {here.show(name)["instance"]["generation"] for name in names} == {1}
        finally:
            for process in (first, second):
                if process is not None:
                    process.kill()
                    process.wait()


def test_two_accounts_on_one_server_are_blind_to_each_other(here):
    here.create("a", "b")
    ours, theirs = (f"muster_{here.uid(name).hex}" for name in "ab")

    for role in ("agent", "engine", "owner", "admin"):
        member = "select pg_has_role($1, oid, 'member') from pg_roles where rolname like $2"
        rows = here.server(member, f"{ours}_{role}", f"{theirs}%")
        assert {row[0] for row in rows} == {False}
    seen = here.control(
        "b",
        "select n.nspname, has_schema_privilege($1, n.oid, 'usage') from pg_namespace n"
        " where nspname in ('jobs', 'jobs_internal')",
        f"{ours}_agent",
    )
    assert {row[1] for row in seen} == {False}


def history(here, name):
    return here.get(f"{account(name)}/history")["value"]
