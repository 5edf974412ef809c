"""Checks 14–20: every move is allowed or refused as the table says, and the first end wins."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from fsm.launch.protocol import Kind, Reason
from fsm.launch.workload import Over
from tests.integration.workload_checks.table import check
from tests.support.launching import QueueFixture, minutes


@check(14)
async def what_is_pending_can_t_be_launched(queue: QueueFixture) -> None:
    workload = await queue.enqueue()
    async with queue.client() as client:
        answer = await client.put("/launched", json={"workloadId": str(workload.id)})

    assert answer.status_code == 410
    assert answer.json()["code"] == "WorkloadGone"
    assert await queue.state(workload) == "pending"


@check(15)
async def launched_after_running_changes_nothing(queue: QueueFixture) -> None:
    workload = await queue.at("running")
    async with queue.client() as client:
        answer = await client.put("/launched", json={"workloadId": str(workload.id)})

    assert answer.status_code == 204
    assert await queue.get(workload) == workload


@check(16)
async def only_what_runs_has_a_heartbeat(queue: QueueFixture) -> None:
    for state in ("pending", "claimed", "launched", "success", "failure", "cancelled"):
        workload = await queue.at(state)
        async with queue.client(await queue.token(workload)) as client:
            answer = await client.put("/heartbeat", json={"workloadId": str(workload.id)})
        assert (state, answer.status_code) == (state, 410)


@check(17)
async def a_heartbeat_moves_the_deadline(queue: QueueFixture) -> None:
    workload = await queue.at("running")
    await queue.later(minutes(9))
    async with queue.client(await queue.token(workload)) as client:
        answer = await client.put("/heartbeat", json={"workloadId": str(workload.id)})

    workload = await queue.get(workload)
    assert answer.status_code == 204
    assert abs(workload.deadline - workload.running_at - minutes(19)) < timedelta(seconds=1)


@check(18)
async def an_unknown_id_is_not_found(queue: QueueFixture) -> None:
    moves = ("claim", "launched", "running", "heartbeat", "success", "failure", "cancel", "gone")
    async with queue.client() as client:
        answers = [
            await client.put(f"/{move}", json={"workloadId": str(uuid4())}) for move in moves
        ]
        answers.append(await client.get(f"/{uuid4()}"))

    assert {answer.status_code for answer in answers} == {404}
    assert all(answer.json()["message"] for answer in answers)


@check(19)
async def the_first_end_wins(queue: QueueFixture) -> None:
    ends = {"success": {}, "failure": {}, "cancel": {}}
    for first in ends:
        workload = await queue.at("running")
        told = len(queue.ended)
        answers = {}
        async with queue.client(await queue.token(workload)) as client:
            for move in (first, *ends):
                body = {"workloadId": str(workload.id)}
                answers[move] = (await client.put(f"/{move}", json=body)).status_code
        assert answers == {move: 204 if move == first else 410 for move in ends}
        assert len(queue.ended) == told + 1
    reasons = {w.state: w.reason for w in queue.ended}
    assert reasons == {"success": None, "failure": Reason.REPORTED, "cancelled": Reason.REQUESTED}


@check(20)
async def many_ends_at_once_are_one(queue: QueueFixture) -> None:
    workload = await queue.at("running", Kind.COMMAND)

    async def end(number: int) -> str | None:
        try:
            match number % 3:
                case 0:
                    done = await queue.do("success", workload, {"n": number}, source="test")
                case 1:
                    done = await queue.do("failure", workload, reason=Reason.EXITED, source="test")
                case _:
                    done = await queue.do(
                        "cancelled", workload, reason=Reason.FENCED, source="test"
                    )
        except Over:
            return None
        return str(done.state)

    ends = await asyncio.gather(*(end(number) for number in range(50)))

    assert set(ends) - {None} == {await queue.state(workload)}
    assert len(queue.ended) == 1
    with pytest.raises(Over):
        await queue.do("running", workload)
