"""Checks 14–20: every move is allowed or refused as the table says, and the first end wins."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from fsm.launch.protocol import Kind, Reason
from fsm.launch.workload import Over
from tests.integration.workload_checks.table import check
from tests.support.launching import Yard, minutes


@check(14)
async def what_is_pending_can_t_be_launched(yard: Yard) -> None:
    workload = await yard.enqueue()
    async with yard.client() as client:
        answer = await client.put("/launched", json={"workloadId": str(workload.id)})

    assert answer.status_code == 410
    assert answer.json()["code"] == "WorkloadGone"
    assert await yard.state(workload) == "pending"


@check(15)
async def launched_after_running_changes_nothing(yard: Yard) -> None:
    workload = await yard.at("running")
    async with yard.client() as client:
        answer = await client.put("/launched", json={"workloadId": str(workload.id)})

    assert answer.status_code == 204
    assert await yard.get(workload) == workload


@check(16)
async def only_what_runs_has_a_heartbeat(yard: Yard) -> None:
    for state in ("pending", "claimed", "launched", "success", "failure", "cancelled"):
        workload = await yard.at(state)
        async with yard.client(await yard.token(workload)) as client:
            answer = await client.put("/heartbeat", json={"workloadId": str(workload.id)})
        assert (state, answer.status_code) == (state, 410)


@check(17)
async def a_heartbeat_moves_the_deadline(yard: Yard) -> None:
    workload = await yard.at("running")
    await yard.later(minutes(9))
    async with yard.client(await yard.token(workload)) as client:
        answer = await client.put("/heartbeat", json={"workloadId": str(workload.id)})

    workload = await yard.get(workload)
    assert answer.status_code == 204
    assert abs(workload.deadline - workload.running_at - minutes(19)) < timedelta(seconds=1)


@check(18)
async def an_unknown_id_is_not_found(yard: Yard) -> None:
    moves = ("claim", "launched", "running", "heartbeat", "success", "failure", "cancel", "gone")
    async with yard.client() as client:
        answers = [
            await client.put(f"/{move}", json={"workloadId": str(uuid4())}) for move in moves
        ]
        answers.append(await client.get(f"/{uuid4()}"))

    assert {answer.status_code for answer in answers} == {404}
    assert all(answer.json()["message"] for answer in answers)


@check(19)
async def the_first_end_wins(yard: Yard) -> None:
    ends = {"success": {}, "failure": {}, "cancel": {}}
    for first in ends:
        workload = await yard.at("running")
        told = len(yard.ended)
        answers = {}
        async with yard.client(await yard.token(workload)) as client:
            for move in (first, *ends):
                body = {"workloadId": str(workload.id)}
                answers[move] = (await client.put(f"/{move}", json=body)).status_code
        assert answers == {move: 204 if move == first else 410 for move in ends}
        assert len(yard.ended) == told + 1
    reasons = {w.state: w.reason for w in yard.ended}
    assert reasons == {"success": None, "failure": Reason.REPORTED, "cancelled": Reason.REQUESTED}


@check(20)
async def many_ends_at_once_are_one(yard: Yard) -> None:
    workload = await yard.at("running", Kind.COMMAND)

    async def end(number: int) -> str | None:
        try:
            match number % 3:
                case 0:
                    done = await yard.do("success", workload, {"n": number}, source="test")
                case 1:
                    done = await yard.do("failure", workload, reason=Reason.EXITED, source="test")
                case _:
                    done = await yard.do("cancelled", workload, reason=Reason.FENCED, source="test")
        except Over:
            return None
        return str(done.state)

    ends = await asyncio.gather(*(end(number) for number in range(50)))

    assert set(ends) - {None} == {await yard.state(workload)}
    assert len(yard.ended) == 1
    with pytest.raises(Over):
        await yard.do("running", workload)
