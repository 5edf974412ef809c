import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muster.core import failpoints
from muster.core.failpoints import DECLARED, Crash, FailpointError, armed, fp, reach
from tests.support.engine_processes import EngineProcesses

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def disarmed():
    yield
    failpoints.setup(None)


def test_unarmed_it_costs_nothing():
    fp("anything at all")
    began = time.perf_counter()
    for _ in range(100_000):
        fp("fsm.effect")
    assert (time.perf_counter() - began) / 100_000 < 1e-6  # measured: about 40 ns


async def test_armed_it_does_what_it_is_told():
    with armed({"fsm.effect": "raise", "fsm.after_effect": "crash"}) as points:
        with pytest.raises(FailpointError):
            fp("fsm.effect")
        with pytest.raises(FailpointError):
            await reach("fsm.effect", "server.making")
        with pytest.raises(Crash):
            await reach("fsm.after_effect")
        await reach("fsm.before_commit_1")
    assert points.hits == {
        "fsm.effect": 1, "fsm.effect@server.making": 1, "fsm.after_effect": 1, "fsm.before_commit_1": 1,
    }  # fmt: skip


def test_a_passage_can_be_meant_alone():
    with armed({"fsm.effect@server.making": "raise"}):
        fp("fsm.effect", "server.starting")
        with pytest.raises(FailpointError):
            fp("fsm.effect", "server.making")


async def test_functions_and_sleeps():
    seen = []

    async def pause():
        seen.append(1)

    with armed({"fsm.effect": pause, "fsm.after_effect": "sleep:0", "fsm.before_commit_1": "off"}):
        await reach("fsm.effect")
        await reach("fsm.after_effect")
        fp("fsm.after_effect")
        fp("fsm.before_commit_1")
    with armed({"fsm.effect": lambda: seen.append(2)}):
        await reach("fsm.effect")
    assert seen == [1, 2]


def test_an_unknown_name_or_action_is_refused():
    with armed({"fsm.effect": "dance"}):
        with pytest.raises(LookupError, match="not declared"):
            fp("fsm.nowhere")
        with pytest.raises(LookupError, match="dance"):
            fp("fsm.effect")


def test_a_file_arms_and_counts_over_processes(tmp_path):
    file = tmp_path / "points.json"
    failpoints.setup(str(file))
    fp("fsm.effect")
    file.write_text(json.dumps({"fsm.effect": "raise times:2"}))
    with pytest.raises(FailpointError):
        fp("fsm.effect")
    fp("fsm.effect")

    assert failpoints.hits(file) == {"fsm.effect": 3}


@pytest.fixture
def spent_failpoint(tmp_path):
    """What arms processes; it has done what it was armed for."""
    processes = EngineProcesses(None, None, tmp_path / "points.json")
    processes.arm({"fsm.effect": "raise times:1"})
    failpoints.setup(str(processes.arms))
    with pytest.raises(FailpointError):
        fp("fsm.effect")
    return processes


def test_a_passage_in_the_middle_of_disarming_counts_with_the_former_ones(
    spent_failpoint, monkeypatch
):
    rename = Path.rename

    def passed(self, to):
        fp("fsm.effect")
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", passed)
    spent_failpoint.arm({})

    assert spent_failpoint.hits() == {}


def test_a_passage_that_began_before_disarming_counts_with_the_former_ones(
    spent_failpoint, monkeypatch
):
    read = failpoints.Armed._read

    def disarmed_meanwhile(self):
        found = read(self)
        spent_failpoint.arm({})
        return found

    monkeypatch.setattr(failpoints.Armed, "_read", disarmed_meanwhile)
    fp("fsm.effect")

    assert spent_failpoint.hits() == {}


def test_an_arming_begins_to_count_anew(tmp_path):
    file = tmp_path / "points.json"
    failpoints.setup(str(file))
    for _ in range(2):
        failpoints.arm(file, {"fsm.effect": "raise times:1"})
        with pytest.raises(FailpointError):
            fp("fsm.effect")
        fp("fsm.effect")
        assert failpoints.hits(file) == {"fsm.effect": 2}


def test_a_kill_is_a_kill(tmp_path):
    file = tmp_path / "points.json"
    file.write_text(json.dumps({"fsm.effect@x": "kill times:1"}))
    code = f"from muster.core import failpoints as f; f.setup({str(file)!r}); f.fp('fsm.effect', 'x'); print('alive')"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT)
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [-9, 0]


def test_every_use_is_declared_and_every_declaration_is_used():
    used = set()
    for package in ("api", "workflows", "fsm", "muster"):
        for file in (ROOT / package).rglob("*.py"):
            used |= set(re.findall(r"(?:\bfp|\breach)\(\s*\"([\w.]+)\"", file.read_text()))
    assert used <= DECLARED
    assert {name for name in DECLARED if name.startswith("fsm.")} <= used


async def test_a_sleep_can_be_cut_short():
    with armed({"fsm.effect": "sleep:60"}), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await reach("fsm.effect")
