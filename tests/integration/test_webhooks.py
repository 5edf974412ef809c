"""Webhooks on a real engine: each event once, signed, retried; a bad receiver harms no run."""

import hashlib
import hmac
import json
import secrets

import pytest
import pytest_asyncio

from engine.core.main import Core
from tests.support.effects import databases, shared_fleet, together
from tests.support.fleet import Fleet
from tests.support.launching import until
from tests.support.webhook_receiver import HANGS, SECRET, add_webhook, deliveries, receiving

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def no_webhooks_left(databases: Fleet):
    yield
    await databases.root.execute("delete from jobs_internal.webhook")


@pytest.fixture
def short_pauses(monkeypatch):
    monkeypatch.setattr("muster.core.webhook.FIRST_PAUSE", 0.01)


async def ended_deliveries(fleet: Fleet, name: str, number: int):
    async def ended() -> bool:
        rows = await deliveries(fleet, name)
        return len(rows) == number and all(row["status"] != "Pending" for row in rows)

    await until(ended)
    return await deliveries(fleet, name)


async def test_check_59_three_attempts_and_a_failure_are_one_notification(databases: Fleet):
    async with receiving() as receiver:
        await add_webhook(databases, "ops", receiver.url)

        run = await databases.run(
            "select 1/0",
            retry_attempts=2,
            initial_retry_interval_seconds=1,
            options={"retryOn": ["22012"], "jitter": 0},
        )

        attempts = {row["attempts"] for row in await databases.targets_of(run)}
        assert await databases.lifecycle(run) == "Failed" and attempts == {3}
        (row,) = await ended_deliveries(databases, "ops", 1)
        assert (row["status"], row["attempts"], row["lastStatusCode"]) == ("Delivered", 1, 200)
        (request,) = receiver.requests
        assert request.document["events"] == ["failed"]
        assert request.document["jobExecutionId"] == str(run)
        assert request.event_id == row["eventId"] == request.document["eventId"]


@pytest.mark.deep
async def test_check_59_a_receiver_that_answers_500_leaves_the_job_as_it_is(
    databases: Fleet, short_pauses
):
    async with receiving() as receiver:
        receiver.answer = 500
        await add_webhook(databases, "ops", receiver.url, maxAttempts=3)

        run = await databases.run("select 1")

        assert await databases.lifecycle(run) == "Succeeded"
        (row,) = await ended_deliveries(databases, "ops", 1)
        assert (row["status"], row["attempts"], row["lastStatusCode"]) == ("Failed", 3, 500)
        assert len({request.event_id for request in receiver.requests}) == 1
        assert [request.headers["muster-attempt"] for request in receiver.requests] == list("123")

        receiver.answer = 204
        replayed = "select jobs_internal.replay_deliveries('ops', null)::text"
        assert json.loads(await databases.root.fetchval(replayed)) == {"replayed": 1}
        (row,) = await ended_deliveries(databases, "ops", 1)
        assert (row["status"], row["attempts"]) == ("Delivered", 1)


async def test_a_receiver_can_verify_who_sent_it(databases: Fleet):
    async with receiving() as receiver:
        await add_webhook(databases, "ops", receiver.url)
        await databases.run("select 1")
        await ended_deliveries(databases, "ops", 1)

        (request,) = receiver.requests
        signed = request.headers["muster-timestamp"].encode() + b"." + request.body
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert request.headers["muster-signature"] == f"v1={expected}"


@pytest.mark.deep
async def test_a_success_after_a_failure_is_also_a_recovery(databases: Fleet):
    async with receiving() as receiver:
        await add_webhook(databases, "ops", receiver.url, events=["recovered"])
        name = f"job {secrets.token_hex(4)}"
        await databases.job(
            name, "select 1 / (select count(*) from pg_class where relname = 'here')"
        )
        for expected in ("Failed", "Succeeded", "Succeeded"):
            if expected == "Succeeded":
                for database in databases.databases:
                    await databases.execute(database, "create table if not exists here ()")
            assert await databases.ended(await databases.start(name)) == expected

        (row,) = await ended_deliveries(databases, "ops", 1)

        assert row["kind"] == "runEnded"
        assert receiver.requests[0].document["data"]["jobName"] == name
    for database in databases.databases:
        await databases.execute(database, "drop table here")


@pytest.mark.deep
async def test_a_webhook_with_jobs_gets_no_others(databases: Fleet):
    async with receiving() as receiver:
        await databases.job("Wanted", "select 1")
        await add_webhook(databases, "ops", receiver.url, jobs=["wanted"])
        await databases.run("select 1")
        await databases.ended(await databases.start("Wanted"))

        (row,) = await ended_deliveries(databases, "ops", 1)

        assert row["jobName"] == "Wanted"


async def test_a_receiver_that_hangs_or_redirects_to_a_closed_address_harms_no_other(
    databases: Fleet, monkeypatch
):
    (core,) = [one.living for one in databases.alive if isinstance(one.living, Core)]
    monkeypatch.setattr(core._targets.webhook_client, "_timeout", 1.0)
    async with receiving() as hanging, receiving() as redirecting, receiving() as well:
        hanging.answer = HANGS
        redirecting.answer, redirecting.location = 302, "http://169.254.169.254/latest"
        await add_webhook(databases, "hanging", hanging.url, maxAttempts=1)
        await add_webhook(databases, "redirecting", redirecting.url, maxAttempts=1)
        await add_webhook(databases, "closed", "http://169.254.169.254:8080/", maxAttempts=1)
        await add_webhook(databases, "well", well.url)

        run = await databases.run("select 1")

        assert await databases.lifecycle(run) == "Succeeded"
        (row,) = await ended_deliveries(databases, "well", 1)
        assert row["status"] == "Delivered"
        errors = {}
        for name in ("hanging", "redirecting", "closed"):
            (row,) = await ended_deliveries(databases, name, 1)
            errors[name] = row["lastError"]
        assert "no answer within" in errors["hanging"]
        assert "redirects are not followed" in errors["redirecting"]
        assert len(redirecting.requests) == 1
        assert "link-local" in errors["closed"]


async def test_a_webhook_is_tested_without_a_run(databases: Fleet):
    async with receiving() as receiver, receiving() as other:
        await add_webhook(databases, "ops", receiver.url)
        await add_webhook(databases, "other", other.url)

        await databases.root.execute("select jobs_internal.send_test_event('ops')")

        (row,) = await ended_deliveries(databases, "ops", 1)
        assert (row["kind"], row["status"]) == ("test", "Delivered")
        assert receiver.kinds() == ["test"] and other.requests == []
