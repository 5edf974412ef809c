"""Small rules of launching that need neither a database nor a process."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from fsm.launch import capacity
from fsm.launch import tokens
from fsm.launch.workload_runner import workload_url
from fsm.launch.protocol import Reason, State
from fsm.launch.capacity import Room
from fsm.launch.tokens import LauncherTokens
from muster.core.errors import Unauthenticated
from muster.core.settings import Secret, Settings, SettingsError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = [f"k{n}:{base64.b64encode(bytes([n]) * 32).decode()}" for n in range(2)]
MB = 1024 * 1024


def settings(**more) -> Settings:
    return Settings(database_url=Secret("postgresql://x"), **more)


def test_a_start_token_fits_its_own_digest_only():
    id = uuid4()
    (one, digest), (other, _) = tokens.start_token(id), tokens.start_token(id)

    assert tokens.workload_of(one) == id
    assert tokens.fits(one, digest)
    assert not tokens.fits(other, digest)
    assert not tokens.fits(one, None)


@pytest.mark.parametrize("text", ["", "w1", "w1.", "w1.nonsense.x", "l1.x.y", "w2." + "0" * 32])
def test_what_is_no_start_token_is_nobody_s(text):
    assert tokens.workload_of(text) is None


def test_a_launcher_token_survives_the_rotation_of_keys():
    old = LauncherTokens(settings(keys=Secret(KEYS[0])))
    rotated = LauncherTokens(settings(keys=Secret(f"{KEYS[1]},{KEYS[0]}")))
    other = LauncherTokens(settings(keys=Secret(KEYS[1])))
    token = old.make(name="L1", group="g", now=NOW, lifetime=timedelta(minutes=5))

    said = rotated.check(token, NOW)
    assert (said.name, said.group) == ("L1", "g")
    with pytest.raises(Unauthenticated):
        other.check(token, NOW)
    with pytest.raises(Unauthenticated, match="expired"):
        rotated.check(token, NOW + timedelta(minutes=6))
    with pytest.raises(Unauthenticated):
        LauncherTokens(settings()).check(token, NOW)


@pytest.mark.parametrize("at", [3, 10, -3])
def test_a_changed_token_is_refused(at):
    made = LauncherTokens(settings(keys=Secret(KEYS[0])))
    token = made.make(name="L1", group="g", now=NOW, lifetime=timedelta(minutes=5))
    changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at:][1:]

    with pytest.raises(Unauthenticated):
        made.check(changed, NOW)


def test_this_machine_can_be_looked_at():
    now = capacity.look()
    assert now.memory > MB
    assert now.load >= 0


def test_a_container_s_limit_counts(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    monkeypatch.setattr(capacity, "GROUP", tmp_path)
    assert capacity.look().memory == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert capacity.look().memory > MB


@pytest.mark.parametrize(
    ("memory", "load", "starting", "full"),
    [
        (1000 * MB, 1.0, 0, None),
        (383 * MB, 1.0, 0, "memory"),
        (1000 * MB, 1.0, 9, "memory"),  # those under way will take theirs
        (1000 * MB, 8.1, 0, "load"),
    ],
)
def test_room_is_memory_and_cores(memory, load, starting, full):
    why = capacity.full(Room(memory=memory, load=load), settings(), starting)
    assert (why is None) if full is None else (full in why)


def test_the_load_can_be_ignored():
    assert capacity.full(Room(memory=2**40, load=99), settings(launcher_max_load=0.0), 0) is None


def test_some_ends_are_wanted():
    assert Reason.SUPERSEDED.wanted
    assert not Reason.EXITED.wanted
    assert not Reason.DRAINED.wanted
    assert [state for state in State if state.over] == ["success", "failure", "cancelled"]


def test_the_workload_api_is_where_it_listens_unless_told_otherwise():
    assert workload_url(settings()) == "http://127.0.0.1:8081"
    assert workload_url(settings(internal_url="http://plane:9")) == "http://plane:9"


@pytest.mark.parametrize(
    "wrong", [{"workload_silent": timedelta(seconds=9)}, {"monitor_sweep": timedelta(seconds=16)}]
)
def test_rhythms_that_can_t_work_are_refused(wrong):
    with pytest.raises(SettingsError, match="MUSTER_WORKLOAD_SILENT"):
        settings(**wrong)


def test_the_client_knows_nothing_of_the_control_plane():
    import fsm.launch.client as module

    source = Path(module.__file__).read_text()
    assert "fsm.launch.queue" not in source
    assert "asyncpg" not in source
