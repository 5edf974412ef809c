"""Every input of every operation: its cost grows with its size at most, and the largest costs little.

CPU time of the thread that the event loop runs on. A cost is the least of several measurements:
everything else on the machine can only add to it.
"""

import asyncio
import gc
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from api.body import MOST_BYTES
from api.endpoint import Endpoint, table
from api.resources import RESOURCES
from tests.support.adversary import Input, Request, cpu, inputs
from tests.support.jobs_fixture import ACCOUNT, SERVER, JobsApi, start_jobs_api, ref
from muster.roles.process import collect_rarely
from workflows import engine_requests, reports
from workflows.validation.target_group import MOST

NAMES = {
    "subscriptionId": "s1",
    "resourceGroupName": "g1",
    "serverName": "srv",
    "databaseName": "control_acc",
    "jobAgentName": "acc",
}
LARGEST_CPU = 0.1  # seconds
FLOOR = 0.005  # below it a difference is noise
GROWTH = 3.0
AGAIN = 4
ROUNDS = 5


def operations() -> list[Endpoint]:
    """One of each: an extension is the same operation at every scope."""
    found = {
        (each.kind, each.type.arm_type, id(each.act), id(each.view), id(each.report)): each
        for each in table(RESOURCES)
    }
    # What would take away what others need comes last.
    return sorted(found.values(), key=lambda each: (each.method == "DELETE", -len(each.path)))


async def dear(app: Any, one: Input) -> str | None:
    whole, half = one.make(one.largest), one.make(one.largest // 2)
    cost, status = await cpu(app, whole)
    assert status, one.name
    if cost > LARGEST_CPU:
        cost = min([cost, *[(await cpu(app, whole))[0] for _ in range(AGAIN)]])
        if cost > LARGEST_CPU:
            return f"{one.name}: {cost * 1000:.0f} ms ({status})"
    if cost <= 2 * FLOOR:
        return None
    less = (await cpu(app, half))[0]
    if cost <= GROWTH * max(less, FLOOR):
        return None
    for _ in range(AGAIN):
        less = min(less, (await cpu(app, half))[0])
        cost = min(cost, (await cpu(app, whole))[0])
    if cost <= GROWTH * max(less, FLOOR):
        return None
    return f"{one.name}: {less * 1000:.0f} ms, twice as much {cost * 1000:.0f} ms ({status})"


@pytest.mark.newest
@pytest.mark.deep
@pytest.mark.timeout(1200)
async def test_no_input_costs_more_than_its_size(settings, targets, tmp_path, monkeypatch):
    for waiting in (engine_requests, reports):  # no engine is there to answer
        monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        _, status = await cpu(jobs_api.app, Request("GET", ACCOUNT))
        assert status == 200  # what is refused at the door would cost nothing
        found = []
        for endpoint in operations():
            for one in inputs(endpoint, NAMES):
                if wrong := await dear(jobs_api.app, one):
                    found.append(f"{endpoint.operation_id}: {wrong}")

    assert found == []


MEMBERS: dict[str, tuple[int, Callable[[int], dict[str, str]]]] = {
    "databases": (200, lambda n: _member("SqlDatabase", databaseName=f"d{n}", **LOGIN)),
    "long names": (200, lambda n: _member("SqlSchema", schemaPattern=f"{n}" + "\u00a0x" * 32)),
    "unknown servers": (400, lambda n: _member("SqlServer", serverName=f"unknown{n}")),
    "unknown credentials": (
        400,
        lambda n: _member(
            "SqlDatabase", databaseName=f"d{n}", refreshCredential=ref(f"credentials/c{n}")
        ),
    ),
    "unknown groups": (
        400,
        lambda n: {"type": "TargetGroup", "targetGroup": ref(f"targetGroups/g{n}")},
    ),
}
LOGIN = {"refreshCredential": ref("credentials/login")}


def _member(type: str, **more: str) -> dict[str, str]:
    return {"type": type, "serverName": "srv", **more}


def group(count: int, member: Callable[[int], dict[str, str]], name: str = "largest") -> Request:
    body = msgspec.json.encode({"properties": {"members": [member(n) for n in range(count)]}})
    assert len(body) <= MOST_BYTES
    return Request("PUT", f"{ACCOUNT}/targetGroups/{name}", body=body)


@pytest.fixture
def rare_collections() -> Iterator[None]:
    """As in the processes of the control plane."""
    thresholds = gc.get_threshold()
    gc.collect()
    collect_rarely()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


class LoopCpu(NamedTuple):
    """Seconds of CPU."""

    api: float
    agent: float

    @property
    def is_dear(self) -> bool:
        return max(self) > LARGEST_CPU

    def grows(self, half: "LoopCpu") -> bool:
        """More than three times as much as for half of the input."""
        return any(w > GROWTH * max(h, FLOOR) for w, h in zip(self, half, strict=True))


def least(costs: list[LoopCpu]) -> LoopCpu:
    return LoopCpu(min(cost.api for cost in costs), min(cost.agent for cost in costs))


async def one_cpu(jobs_api: JobsApi, request: Request, status: int, prepare: str) -> LoopCpu:
    """The cost in the API's event loop and in the agent's, measured once after `prepare`."""
    await jobs_api.metadata(prepare)
    before = jobs_api.agent.transport.cpu
    whole, answer = await cpu(jobs_api.app, request)
    assert answer == status
    agent = jobs_api.agent.transport.cpu - before
    return LoopCpu(whole - agent, agent)


async def loop_cpu(jobs_api: JobsApi, request: Request, status: int) -> LoopCpu:
    return least([await one_cpu(jobs_api, request, status, "select") for _ in range(ROUNDS)])


async def growth(
    jobs_api: JobsApi, request: Callable[[int], Request], status: int, *, prepare: str = "select"
) -> tuple[LoopCpu, LoopCpu]:
    """The cost of half and of the whole, measured in turn."""
    halves, wholes = [], []
    for _ in range(ROUNDS):
        halves.append(await one_cpu(jobs_api, request(MOST // 2), status, prepare))
        wholes.append(await one_cpu(jobs_api, request(MOST), status, prepare))
    return least(halves), least(wholes)


@pytest.mark.newest
@pytest.mark.usefixtures("rare_collections")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind == "databases" else [pytest.mark.deep])
        for kind in MEMBERS
    ],
)
async def test_the_largest_target_group_costs_little(settings, targets, tmp_path, kind):
    status, member = MEMBERS[kind]
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        await cpu(jobs_api.app, group(1, member))  # the first one is 201
        half, whole = await growth(jobs_api, lambda count: group(count, member), status)
        paths = ("/largest", "") if status == 200 else ()
        answers = [
            await loop_cpu(jobs_api, Request("GET", f"{ACCOUNT}/targetGroups{path}"), 200)
            for path in paths
        ]

    assert [cost for cost in (whole, *answers) if cost.is_dear] == []
    assert not whole.grows(half), (half, whole)


@pytest.mark.newest
@pytest.mark.parametrize("place", ["api.body.parse", "workflows.target_groups.validate"])
async def test_others_are_answered_while_a_large_body_is_read(
    settings, targets, tmp_path, monkeypatch, place
):
    module, _, name = place.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    began, answered = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Any:
        began.set()
        assert answered.wait(10), "the event loop served nothing meanwhile"
        return function(*arguments)

    _, member = MEMBERS["databases"]
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        monkeypatch.setattr(place, slow)
        writing = asyncio.create_task(cpu(jobs_api.app, group(MOST, member)))
        assert await asyncio.to_thread(began.wait, 10)
        assert (await jobs_api.get("targetGroups/fleet")).status_code == 200
        assert not writing.done()
        answered.set()
        _, status = await writing

    assert status == 201


@pytest.mark.newest
async def test_a_page_of_large_groups_is_short(settings, targets, tmp_path):
    _, member = MEMBERS["databases"]
    names = ["a", "b", "c", "fleet"]
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        for name in ("a", "b", "c"):
            _, status = await cpu(jobs_api.app, group(4000, member, name))
            assert status == 201
        pages = [(await jobs_api.get("targetGroups")).json()]
        while link := pages[-1].get("nextLink"):
            pages.append((await jobs_api.call.get(link)).json())

    assert [[each["name"] for each in page["value"]] for page in pages] == [
        [name] for name in names[:3]
    ] + [names[3:]]


NEW_SERVERS = """
    insert into resource
    select (jsonb_populate_record(r, jsonb_build_object(
               'uid', gen_random_uuid(), 'name', r.name || n, 'key', r.key || n, 'id', r.id || n))).*
      from resource r, generate_series($2::int, $3::int) n
     where r.id = $1
"""
NONE_ALLOWED = "delete from account_server"


def new_server(n: int) -> dict[str, str]:
    return _member("SqlServer", serverName=f"srv{n + 1}")


@pytest.mark.newest
@pytest.mark.deep
@pytest.mark.usefixtures("rare_collections")
async def test_to_allow_all_servers_of_a_subscription_costs_little(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        for first in range(1, MOST, 1000):  # each within the time limit of a statement
            await jobs_api.metadata(NEW_SERVERS, SERVER, first, first + 999)
        await cpu(jobs_api.app, group(1, new_server))  # the first one is 201
        half, whole = await growth(
            jobs_api, lambda count: group(count, new_server), 200, prepare=NONE_ALLOWED
        )

    assert not whole.is_dear, whole
    assert not whole.grows(half), (half, whole)
