"""Runtimes: one process per workload, found again by whoever comes next, and nobody else is ever hit."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from datetime import timedelta
from uuid import uuid4

import pytest

from fsm.launch.protocol import Kind, Spec, Start
from fsm.launch.runtime import StartFailed
from fsm.launch.runtimes.logs import Logs
from fsm.launch.runtimes.process import ProcessRuntime, muster_program
from muster.core.process import Process, boot_id
from tests.support.fake_runtime import FakeRuntime
from tests.support.launching import found, until

pytestmark = pytest.mark.newest

SECRET = "do-not-show-me"
SOON = timedelta(seconds=1)


def a_start(**spec) -> Start:
    return Start(
        id=uuid4(), kind=Kind.ENGINE, url="http://nowhere", token=SECRET, heartbeat=5, patience=30,
        spec=Spec(**spec), secrets={"password": SECRET},
    )  # fmt: skip


def sleeper(_start, folder, start_file) -> list[str]:
    code = "import time; print('hello', flush=True); time.sleep(60)"
    return [sys.executable, "-ISc", code, str(start_file)]


@pytest.fixture
def runtime(tmp_path):
    yield ProcessRuntime(tmp_path, {"PATH": os.environ["PATH"]}, program=sleeper)
    for process in found(tmp_path):
        process.send(signal.SIGKILL)


@pytest.fixture(params=["fake", "process"])
def any_runtime(request):
    return FakeRuntime() if request.param == "fake" else request.getfixturevalue("runtime")


class TestEveryRuntime:
    async def test_a_process_is_made_once(self, any_runtime):
        start = a_start()
        assert any_runtime.find(start.id) is None
        assert not any_runtime.was_started(start.id)

        first = await any_runtime.start(start)
        again = await any_runtime.start(start)

        assert first == again == any_runtime.find(start.id)
        assert any_runtime.was_started(start.id)
        assert any_runtime.known() == {start.id}
        assert any_runtime.exit_code(start.id) is None

    async def test_its_end_is_seen_at_once_and_its_code_is_kept(self, any_runtime):
        start = a_start()
        handle = await any_runtime.start(start)
        watching = asyncio.create_task(any_runtime.ended(handle))

        await any_runtime.stop(handle, SOON)

        await asyncio.wait_for(watching, 1)
        assert any_runtime.find(start.id) is None
        assert any_runtime.exit_code(start.id) == -signal.SIGTERM
        assert any_runtime.was_started(start.id)
        any_runtime.forget(start.id)
        assert any_runtime.known() == set()
        assert not any_runtime.was_started(start.id)


class TestProcesses:
    async def test_it_has_a_session_of_its_own_and_no_secret_can_be_seen(self, runtime, tmp_path):
        start = a_start()
        process = (await runtime.start(start)).mark

        assert os.getsid(process.pid) == process.pid
        proc = f"/proc/{process.pid}"
        for name in ("cmdline", "environ"):
            with open(f"{proc}/{name}") as file:
                assert SECRET not in file.read()
        assert str(tmp_path) in " ".join(process.argv)
        start_file = tmp_path / "workloads" / f"{start.id}.start"
        assert json.loads(start_file.read_text())["token"] == SECRET
        for path in (*(tmp_path / "workloads").iterdir(), *(tmp_path / "logs/workloads").iterdir()):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600

        await runtime.stop(runtime.find(start.id), SOON)
        runtime.forget(start.id)
        assert not start_file.exists()

    async def test_the_next_launcher_finds_it_without_any_record(self, runtime, tmp_path):
        start = a_start()
        process = (await runtime.start(start)).mark
        (tmp_path / "workloads" / f"{start.id}.pid").unlink()

        another = ProcessRuntime(tmp_path, {}, program=sleeper)

        assert another.find(start.id).mark == process
        assert another.was_started(start.id)

    @pytest.mark.parametrize(
        "reuse", ["pid and time of a stranger", "pid of a stranger", "another boot"]
    )
    async def test_a_stranger_with_its_pid_is_never_hit(self, runtime, tmp_path, reuse):
        start = a_start()
        handle = await runtime.start(start)
        os.kill(handle.mark.pid, signal.SIGKILL)
        await runtime.ended(handle)
        stranger = subprocess.Popen(["/bin/sleep", "60"])
        try:
            ticks = Process.find(stranger.pid).started + (1 if reuse == "pid of a stranger" else 0)
            boot = "long ago" if reuse == "another boot" else boot_id()
            record = {"pid": stranger.pid, "started": ticks, "boot_id": boot}
            (tmp_path / "workloads" / f"{start.id}.pid").write_text(json.dumps(record))
            another = ProcessRuntime(tmp_path, {}, program=sleeper)

            assert (
                another.find(start.id) is None
            )  # the lock is free: whoever that is, it is not ours
            assert another.exit_code(start.id) is None
            another.forget(start.id)
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()

    async def test_who_does_not_listen_is_ended_with_all_it_left(self, tmp_path):
        def deaf(*_):
            return ["/bin/sh", "-c", "trap '' TERM; sleep 60 & sleep 60 & wait; wait; sleep 60"]

        runtime = ProcessRuntime(tmp_path, {"PATH": os.environ["PATH"]}, program=deaf)
        start = a_start()
        handle = await runtime.start(start)
        await until(lambda: len(runtime._holders(start.id)) == 3)
        family = runtime._holders(start.id)
        await runtime.stop(handle, timedelta(milliseconds=200))

        assert [each.alive for each in family] == [False] * 3
        assert runtime.exit_code(start.id) == -signal.SIGKILL

    async def test_now_is_another_signal(self, tmp_path):
        def polite(*_):
            return [
                "/bin/sh",
                "-c",
                "trap 'exit 2' INT; trap 'exit 15' TERM; while :; do sleep .02; done",
            ]

        runtime = ProcessRuntime(tmp_path, {"PATH": os.environ["PATH"]}, program=polite)
        for now, code in ((True, 2), (False, 15)):
            start = a_start()
            handle = await runtime.start(start)
            await until(
                lambda start=start: b"SigCgt:\t0000000000000000" not in _status(runtime, start)
            )
            await runtime.stop(handle, SOON, now=now)
            assert runtime.exit_code(start.id) == code

    async def test_it_may_not_take_more_than_it_is_given(self, runtime):
        start = a_start(files=77, memory=2**30)
        process = (await runtime.start(start)).mark
        with open(f"/proc/{process.pid}/limits") as file:
            limits = {line[:25].strip(): line[26:].split()[:2] for line in file}

        assert limits["Max open files"] == ["77", "77"]
        assert limits["Max core file size"] == ["0", "0"]
        assert limits["Max address space"] == [str(2**30)] * 2

    async def test_what_can_t_be_started_leaves_nothing(self, tmp_path):
        runtime = ProcessRuntime(tmp_path, {}, program=lambda *_: ["/nowhere"])
        with pytest.raises(StartFailed):
            await runtime.start(a_start())
        assert runtime.known() == set()
        assert [f.name for f in (tmp_path / "workloads").iterdir()] == []

    async def test_what_it_prints_is_kept(self, runtime):
        start = a_start()
        await runtime.start(start)
        await until(lambda: runtime.logs(start.id) == b"hello\n")
        assert runtime.logged() == {start.id}

        runtime.tidy([start.id])
        assert runtime.logs(start.id) == b""

    def test_a_long_log_is_cut_while_it_is_written(self, tmp_path):
        logs, id = Logs(tmp_path / "logs", limit=100), uuid4()
        with open(logs.path(id), "ab") as writer:
            writer.write(b"a" * 101)
            writer.flush()
            logs.tidy([])
            writer.write(b"b" * 50)
            writer.flush()
            logs.tidy([])

        assert logs.tail(id, 1000) == b"b" * 50
        assert logs.path(id).with_suffix(".log.1").read_bytes() == b"a" * 100
        assert logs.known() == {id}

    def test_the_command_line_says_what_it_is_and_where(self, tmp_path):
        start = a_start(arguments=("--slots", "4"))
        command = muster_program(start, tmp_path, tmp_path / "x.start")

        assert " ".join(command).startswith(
            f"{sys.executable} -P -m muster engine --data-dir {tmp_path}"
        )
        assert command[-2:] == ["--slots", "4"]
        assert SECRET not in " ".join(command)


def _status(runtime, start) -> bytes:
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{runtime.find(start.id).mark.pid}/status", "rb") as file,
    ):
        return file.read()
    return b"SigCgt:\t0000000000000000"
