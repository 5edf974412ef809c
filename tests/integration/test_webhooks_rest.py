"""Webhooks and streams of events through REST; no engine runs, so that nothing is delivered."""

import json

import pytest

from tests.support import arm
from tests.support.jobs_fixture import ACCOUNT, SQL, start_jobs_api

pytestmark = pytest.mark.newest

URL = "https://alerts.example.org/muster"
SECRET = "a secret of at least 16 characters"
WEBHOOK = {"url": URL, "secret": SECRET, "events": ["failed", "recovered"]}
PUBLISH = """
with e as (
    insert into jobs_internal.event (number, kind, job_execution_id, notifications, payload, created_at)
    select n, 'runEnded', $2::uuid, '{failed}', '{"jobName": "nightly"}', clock_timestamp()
      from generate_series(1, $1::bigint) n
    returning number
)
update jobs_internal.event_counter set last_number = $1
"""
DELIVERY = """
insert into jobs_internal.webhook_delivery (webhook_id, number, status, attempts, last_error)
select w.webhook_id, n, 'Failed', 8, 'the receiver answered 500'
  from jobs_internal.webhook w, generate_series(1, 2) n
"""


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        yield made


def at(run, *more):
    return "/".join(["jobs/nightly/executions", str(run), *map(str, more)])


async def test_a_webhook_is_written_read_and_deleted(jobs_api):
    made = await jobs_api.made("webhooks/ops", {"properties": WEBHOOK})

    assert made["properties"] == {
        "url": URL, "events": ["failed", "recovered"], "jobs": [], "enabled": True, "maxAttempts": 8,
        "pending": 0, "delivered": 0, "failed": 0,
    }  # fmt: skip
    kept = "select secret from jobs_internal.webhook"
    ((secret,),) = await jobs_api.control(kept)
    assert secret.startswith("sealed:") and SECRET not in secret

    changed = {key: value for key, value in made["properties"].items()} | {"jobs": ["nightly"]}
    again = await jobs_api.made("webhooks/OPS", {"properties": changed})
    assert (again["name"], again["properties"]["jobs"]) == ("ops", ["nightly"])
    assert await jobs_api.control(kept) == [(secret,)], "without a secret the old one stays"
    listed = await jobs_api.seen("webhooks")
    assert [each["name"] for each in listed["value"]] == ["ops"]

    assert (await jobs_api.delete("webhooks/ops")).status_code == 200
    assert (await jobs_api.get("webhooks/ops")).status_code == 404


WRONG = (
    ({"url": "ftp://x.example"}, "properties.url"),
    ({"url": "https://169.254.169.254/latest"}, "properties.url"),
    ({"url": "http://alerts.example.org:6379/"}, "properties.url"),
    ({"secret": "short"}, "properties.secret"),
    ({"events": []}, "properties.events"),
    ({"events": ["sometimes"]}, "properties.events"),
    ({"maxAttempts": 21}, "properties.maxAttempts"),
)


@pytest.mark.deep
async def test_a_wrong_webhook_is_refused_with_its_field(jobs_api):
    for wrong, target in WRONG:
        answer = await jobs_api.put("webhooks/ops", {"properties": WEBHOOK | wrong})
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        targets = [error.get("target"), *(each["target"] for each in error.get("details", []))]
        assert any(str(each).startswith(target) for each in targets), (wrong, error)
    answer = await jobs_api.put("webhooks/ops", {"properties": WEBHOOK | {"secret": None}})
    assert answer.status_code == 400 and "needs a secret" in answer.text


@pytest.mark.deep
async def test_dead_letters_are_listed_and_sent_again(jobs_api):
    await jobs_api.made("webhooks/ops", {"properties": WEBHOOK})
    await jobs_api.control(PUBLISH, 2, None)
    await jobs_api.control(DELIVERY)

    first, second = (await jobs_api.seen("webhooks/ops/deliveries", status="failed"))["value"]
    assert (first["number"], second["number"]) == (2, 1)
    assert (first["status"], first["lastError"]) == ("Failed", "the receiver answered 500")
    assert first["events"] == ["failed"]
    page = await jobs_api.seen("webhooks/ops/deliveries", __top="1")
    assert len(page["value"]) == 1 and "nextLink" in page

    body = {"eventIds": [first["eventId"]]}
    assert (await jobs_api.post("webhooks/ops/replay", body)).json() == {"replayed": 1}
    assert (await jobs_api.post("webhooks/ops/replay")).json() == {"replayed": 1}
    assert (await jobs_api.post("webhooks/ops/replay")).json() == {"replayed": 0}
    shown = (await jobs_api.seen("webhooks/ops"))["properties"]
    assert (shown["pending"], shown["failed"]) == (2, 0)
    unknown = {"eventIds": ["6f6f2a0e-55f1-4e0e-9a57-2b9f0f6b3c11"]}
    assert (await jobs_api.post("webhooks/ops/replay", unknown)).status_code == 400


@pytest.mark.deep
async def test_a_test_writes_one_event(jobs_api):
    await jobs_api.made("webhooks/ops", {"properties": WEBHOOK})

    assert (await jobs_api.post("webhooks/ops/test")).status_code == 200

    (row,) = await jobs_api.control("select kind, payload from jobs_internal.outbox")
    assert (row["kind"], json.loads(row["payload"])["webhookName"]) == ("test", "ops")
    assert (await jobs_api.post("webhooks/none/test")).status_code == 404


@pytest.mark.deep
async def test_a_policy_of_auto_disable_is_kept_and_checked(jobs_api):
    policy = {"failures": 5, "days": 0.5}
    made = await jobs_api.made("jobs/nightly", {"properties": {"autoDisable": policy}})
    assert made["properties"]["autoDisable"] == policy
    assert "health" not in made["properties"]

    patched = await jobs_api.patch("jobs/nightly", {"autoDisable": None})
    assert "autoDisable" not in patched.json()["properties"]
    for wrong in ({"failures": -1}, {"days": 400}, {"sometimes": 1}):
        answer = await jobs_api.put("jobs/nightly", {"properties": {"autoDisable": wrong}})
        assert answer.status_code == 400 and "autoDisable" in answer.text


def numbers(text: str) -> list[int]:
    """Of the events in a stream; what ends it has no number."""
    data = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
    return [each["number"] for each in data if "number" in each]


async def test_an_account_has_a_stream_of_events(jobs_api):
    await jobs_api.control(PUBLISH, 150, None)

    async def read(after: str | None = None, **headers: str):
        query = SQL | {"follow": "false"} | ({"after": after} if after else {})
        return await jobs_api.call.get(f"{ACCOUNT}/events", params=query, headers=headers)

    answer = await read("0")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert numbers(answer.text) == list(range(1, 151))
    assert numbers((await read()).text) == [], "without a position from now on"
    assert numbers((await read("0", **{"Last-Event-ID": "148"})).text) == [149, 150]
    assert "event: gap" in (await read("151")).text
    for wrong in ("-1", "x", "9" * 30):
        assert (await read(wrong)).status_code == 400
    missing = await jobs_api.call.get(f"{ACCOUNT}x/events", params=SQL)
    assert missing.status_code == 404


@pytest.mark.deep
async def test_an_execution_has_its_own_stream(jobs_api):
    await jobs_api.a_job()
    run = (await jobs_api.post("jobs/nightly/start")).json()["name"]
    await jobs_api.control(PUBLISH, 3, None)
    await jobs_api.control(
        "update jobs_internal.event set job_execution_id = $1 where number = 2", run
    )

    answer = await jobs_api.get(at(run, "events"), follow="false")

    assert numbers(answer.text) == [2]
    other = "00000000-0000-4000-8000-000000000000"
    assert (await jobs_api.get(at(other, "events"))).status_code == 404


@pytest.mark.deep
async def test_a_stream_needs_the_right_to_read(jobs_api):
    stranger = arm.calling(jobs_api.app, "no token of ours")
    answer = await stranger.get(f"{ACCOUNT}/events", params=SQL)

    assert answer.status_code == 401
