"""What the demo promises is checked by the demo itself; here, that it can tell when it is not so."""

import asyncio
import contextlib
import io
import threading

import pytest

from muster.cli import demo, demo_fleet, demo_tour
from muster.cli.announce import announced
from muster.cli.demo_fleet import TENANTS, Fleet
from muster.core.connect_errors import NoRoom
from muster.core.settings import Secret
from tests.unit.cli.fake_rest import ACCOUNT, a_summary, listed


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (a_summary("Created"), False),
        (a_summary("InProgress", Succeeded=57, InProgress=1, WaitingForRetry=1, Failed=1), False),
        (a_summary("InProgress", Succeeded=58, InProgress=1, Failed=1), False),
        (a_summary("InProgress", Succeeded=58, WaitingForRetry=1, Failed=1), True),
        (a_summary("Failed", Succeeded=59, Failed=1), True),
    ],
)
def test_the_stage_is_reached_when_only_the_held_tenant_waits(summary, expected):
    assert demo_tour._only_two_are_left(summary) is expected


def test_a_command_that_ends_otherwise_stops_the_demo(muster, rest, capsys):
    rest.on("GET", f"{ACCOUNT}/jobs", listed())

    demo_tour._muster("job", "list")
    assert "$ muster job list" in capsys.readouterr().out
    with pytest.raises(demo_tour.Wrong, match="exits with 0, not 6"):
        demo_tour._muster("job", "show", "none")


def test_the_fleet_has_sixty_tenants_over_three_servers():
    servers = {
        name: {"host": "127.0.0.1", "port": 20000 + n} for n, name in enumerate(demo_tour.NAMES)
    }

    fleet = Fleet("postgresql://u@127.0.0.1:1/d", Secret("p"), servers)

    assert len({tenant.database for tenant in fleet.tenants}) == 3 * TENANTS == 60
    assert [str(fleet.tenants[at]) for at in (0, 26, 47)] == [
        "fleet-1/tenant_01", "fleet-2/tenant_27", "fleet-3/tenant_48",
    ]  # fmt: skip


def test_a_stack_that_does_not_come_up_is_told(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo.sys, "executable", "/bin/false")

    assert demo.run(tmp_path / "d") == 1
    assert "muster up ended with 1" in capsys.readouterr().err


def test_a_failure_is_one_line_and_no_traceback(monkeypatch, tmp_path, capsys):
    """Also one that no code expects, and one inside a group of tasks."""

    async def fails(_self):
        raise NoRoom("The server 127.0.0.1 is starting.")

    async def furnish():
        async with asyncio.TaskGroup() as group:
            group.create_task(fails(None))

    @contextlib.contextmanager
    def broken(_folder):
        asyncio.run(furnish())
        yield

    monkeypatch.setattr(demo, "_up", broken)

    assert demo.run(tmp_path / "d") == 1
    printed = capsys.readouterr().err
    assert "muster demo: The server 127.0.0.1 is starting. The logs are in" in printed
    assert printed.count("\n") == 1


async def test_a_server_that_is_still_starting_is_waited_for(monkeypatch):
    answers = iter([NoRoom("57P03"), NoRoom("57P03"), None])
    asked = []

    @contextlib.asynccontextmanager
    async def session(_self, server, database="postgres"):
        asked.append(server)
        if error := next(answers):
            raise error
        yield

    monkeypatch.setattr(Fleet, "_session", session)
    monkeypatch.setattr(demo_fleet, "ANSWER_PAUSE", 0)
    fleet = Fleet("postgresql://u@127.0.0.1:1/d", Secret("p"), {})

    await fleet.wait_until_it_answers("fleet-1")

    assert asked == ["fleet-1"] * 3


def test_what_takes_long_is_announced_again(monkeypatch):
    class Stream(io.StringIO):
        def write(self, text):
            if text.startswith("  … "):
                repeated.set()
            return super().write(text)

    repeated, stream = threading.Event(), Stream()
    monkeypatch.setattr("sys.stdout", stream)

    with announced("Making the servers", interval=0.01):
        assert repeated.wait(60)

    assert stream.getvalue().startswith("Making the servers …\n  … 0 s\n")
