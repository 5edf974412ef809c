"""Every input of every operation: its cost grows with its size at most, and the largest costs little.

CPU time of the thread that the event loop runs on, so a busy machine is no failure; what looks
dear is measured again, and the least counts.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from api.endpoint import Endpoint, table
from api.resources import RESOURCES
from tests.support.adversary import Input, Request, cpu, inputs
from tests.support.jobs_fixture import ACCOUNT, start_jobs_api, ref
from workflows import reports, target_groups
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
    if cost > GROWTH * max(less, FLOOR):
        less = max([less, *[(await cpu(app, half))[0] for _ in range(AGAIN)]])
        cost = min([cost, *[(await cpu(app, whole))[0] for _ in range(AGAIN)]])
        if cost > GROWTH * max(less, FLOOR):
            return (
                f"{one.name}: {less * 1000:.0f} ms, twice as much {cost * 1000:.0f} ms ({status})"
            )
    return None


@pytest.mark.newest
@pytest.mark.deep
@pytest.mark.timeout(600)
async def test_no_input_costs_more_than_its_size(settings, targets, tmp_path, monkeypatch):
    for waiting in (target_groups, reports):  # no engine is there to answer
        monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    unhurried = replace(settings, node_agent_silent=timedelta(hours=1))
    async with start_jobs_api(unhurried, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        _, status = await cpu(jobs_api.app, Request("GET", ACCOUNT))
        assert status == 200  # what is refused at the door would cost nothing
        found = []
        for endpoint in operations():
            for one in inputs(endpoint, NAMES):
                if wrong := await dear(jobs_api.app, one):
                    found.append(f"{endpoint.operation_id}: {wrong}")

    assert found == []


@pytest.mark.newest
async def test_a_target_group_costs_in_proportion_to_its_members(settings, targets, tmp_path):
    """It is accepted, so it costs more than what is refused; but in proportion."""

    def group(count: int) -> Request:
        member = {"type": "SqlDatabase", "serverName": "srv"}
        login = {"refreshCredential": ref("credentials/login")}
        members = [member | login | {"databaseName": f"d{number}"} for number in range(count)]
        body = msgspec.json.encode({"properties": {"members": members}})
        return Request("PUT", f"{ACCOUNT}/targetGroups/largest", body=body)

    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        assert (await cpu(jobs_api.app, group(MOST)))[1] == 201
        quarter, whole = [
            min([(await cpu(jobs_api.app, group(count)))[0] for _ in range(AGAIN)])
            for count in (MOST // 4, MOST)
        ]

    assert whole < GROWTH**2 * max(quarter, FLOOR)  # doubled twice
