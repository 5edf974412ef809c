"""PATCH of jobs and steps: what is not named stays as it is."""

import asyncio

import pytest

from tests.support import arm
from tests.support.jobs_fixture import SQL, a_step, start_jobs_api, ref

pytestmark = pytest.mark.newest

SCHEDULE = {
    "type": "Recurring", "interval": "PT1H", "startTime": "2031-01-01T00:00:00Z", "enabled": True,
    "overlap": "queueOne", "misfire": {"policy": "runOnce", "withinSeconds": 60},
}  # fmt: skip
JOB = {
    "description": "d", "owner": "ops", "labels": {"a": "1", "b": "2"}, "retentionDays": 9,
    "schedule": SCHEDULE,
}  # fmt: skip


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        yield made


def problem(answer):
    return answer.status_code, arm.error(answer)


async def changed(jobs_api, path, patch):
    """Its properties after the patch, without what belongs to the row."""
    answer = await jobs_api.patch(path, patch)
    assert answer.status_code == 200, answer.text
    assert answer.json() == await jobs_api.seen(path)
    return answer.json()["properties"]


async def test_a_job_is_paused_and_keeps_its_schedule(jobs_api):
    await jobs_api.made("jobs/nightly", {"properties": JOB})
    before = (await jobs_api.seen("jobs/nightly"))["properties"]

    after = await changed(jobs_api, "jobs/nightly", {"paused": True})

    assert after == {**before, "paused": True}
    assert after["schedule"] | SCHEDULE == after["schedule"]
    assert (await jobs_api.seen("jobs/nightly/nextRuns"))["value"] == []
    assert await changed(jobs_api, "jobs/nightly", {"paused": None}) == before


async def test_null_removes_and_objects_merge(jobs_api):
    await jobs_api.made("jobs/nightly", {"properties": JOB})

    patch = {
        "owner": None, "labels": {"a": None, "c": "3"},
        "schedule": {"enabled": False, "misfire": {"withinSeconds": None}},
    }  # fmt: skip
    after = await changed(jobs_api, "jobs/nightly", patch)

    assert "owner" not in after
    assert after["labels"] == {"b": "2", "c": "3"}
    assert after["schedule"]["misfire"] == {"policy": "runOnce"}
    assert (after["schedule"]["interval"], after["schedule"]["enabled"]) == ("PT1H", False)
    assert (await changed(jobs_api, "jobs/nightly", {"schedule": None}))["schedule"][
        "type"
    ] == "Once"


@pytest.mark.parametrize(
    ("first", "second", "gone"),
    [
        ({"interval": "P1D"}, {"type": "Recurring", "interval": "P1D"}, {"cron", "timeZone"}),
        (
            {"cron": "0 2 * * *", "timeZone": "Europe/Berlin"},
            {"type": "Recurring", "cron": "0 2 * * *", "timeZone": "Europe/Berlin"},
            {"interval"},
        ),
        ({"type": "Once"}, {"type": "Once"}, {"interval", "cron", "timeZone"}),
        (
            {"startTime": "2032-01-01T01:00:00+01:00"},
            {"startTime": "2032-01-01T00:00:00Z", "interval": "PT1H"},
            {"cron"},
        ),
    ],
)
async def test_one_kind_of_schedule_replaces_another(jobs_api, first, second, gone):
    await jobs_api.made("jobs/nightly", {"properties": JOB})

    after = (await changed(jobs_api, "jobs/nightly", {"schedule": first}))["schedule"]

    assert after | second == after
    assert not gone & after.keys()
    assert (after["enabled"], after["overlap"]) == (True, "queueOne")


async def test_a_patch_is_checked_as_a_whole_job_would_be(jobs_api):
    await jobs_api.made("jobs/nightly", {"properties": JOB})
    wrong = {
        "properties.priority": ({"priority": 1}, "OptionNotSupported"),
        "properties.schedule.endTime": (
            {"schedule": {"endTime": "2030-01-01T00:00:00Z"}}, "InvalidParameterValue",
        ),
        "properties.pused": ({"pused": True}, "InvalidRequestContent"),
    }  # fmt: skip

    for target, (patch, code) in wrong.items():
        answer = await jobs_api.patch("jobs/nightly", patch)
        assert problem(answer) == (400, code), target
        assert answer.json()["error"]["target"] == target
    assert problem(await jobs_api.patch("jobs/none", {"paused": True})) == (404, "ResourceNotFound")


async def test_a_patch_keeps_to_its_etag_and_is_made_once(jobs_api):
    await jobs_api.made("jobs/nightly", {"properties": JOB})
    old = (await jobs_api.get("jobs/nightly")).headers["etag"]
    key = {"Idempotency-Key": "0b5b3c0e-0000-4000-8000-000000000001"}

    first = await jobs_api.patch("jobs/nightly", {"paused": True}, **{"If-Match": old}, **key)
    await jobs_api.patch("jobs/nightly", {"description": "later"})
    repeat = await jobs_api.patch("jobs/nightly", {"paused": True}, **{"If-Match": old}, **key)
    late = await jobs_api.patch("jobs/nightly", {"paused": False}, **{"If-Match": old})

    assert (first.status_code, repeat.status_code) == (200, 200)
    assert repeat.json() == first.json()
    assert first.headers["etag"] != old
    assert problem(late) == (412, "PreconditionFailed")
    assert (await jobs_api.seen("jobs/nightly"))["properties"]["paused"] is True


async def test_patches_at_once_all_count(jobs_api):
    await jobs_api.made("jobs/nightly", {"properties": JOB})

    answers = await asyncio.gather(
        *(jobs_api.patch("jobs/nightly", {"labels": {f"l{n}": "x"}}) for n in range(8))
    )

    assert [answer.status_code for answer in answers] == [200] * 8
    labels = (await jobs_api.seen("jobs/nightly"))["properties"]["labels"]
    assert labels.keys() == {"a", "b", *(f"l{n}" for n in range(8))}


async def test_a_step_changes_in_what_is_named_and_makes_a_version(jobs_api):
    await jobs_api.a_job()
    options = {"settings": {"role": "r", "searchPath": "s"}, "idempotent": True, "jitter": 0.5}
    step = a_step(executionOptions={"retryAttempts": 3, "timeoutSeconds": 60}, **options)
    await jobs_api.made("jobs/nightly/steps/first", step)
    before = (await jobs_api.seen("jobs/nightly/steps/first"))["properties"]

    patch = {
        "executionOptions": {"retryAttempts": 5, "timeoutSeconds": None},
        "settings": {"role": None}, "idempotent": None, "guard": "job",
    }  # fmt: skip
    after = await changed(jobs_api, "jobs/nightly/steps/first", patch)
    await changed(jobs_api, "jobs/nightly/steps/first", patch)

    assert after == {
        **{name: value for name, value in before.items() if name != "idempotent"},
        "executionOptions": {**before["executionOptions"], "retryAttempts": 5, "timeoutSeconds": 43200},
        "settings": {"searchPath": "s"}, "guard": "job",
    }  # fmt: skip
    assert (await jobs_api.seen("jobs/nightly"))["properties"]["version"] == 3
    script = {"action": {"value": "select 2"}, "credential": ""}
    after = await changed(jobs_api, "jobs/nightly/steps/first", script)
    assert (after["action"]["value"], "credential" in after) == ("select 2", False)


async def test_a_patch_is_checked_as_a_whole_step_would_be(jobs_api):
    await jobs_api.a_job()
    await jobs_api.patch("jobs/nightly/steps/first", {"guard": True})
    wrong = [
        ({"action": None}, "properties.action", "MissingRequiredParameter"),
        ({"action": {"value": None}}, "properties.action.value", "MissingRequiredParameter"),
        ({"targetGroup": None}, "properties.targetGroup", "MissingRequiredParameter"),
        ({"output": {}}, None, "MissingRequiredParameter"),
        ({"advance": "perTarget"}, "options", "OptionHasNoEffect"),
        ({"transaction": "none"}, "properties.guard", "InvalidParameterValue"),
        ({"action": {"value": "vacuum"}}, "properties.guard", "InvalidParameterValue"),
        ({"credential": ref("credentials/none")}, None, "InvalidParameterValue"),
    ]

    for patch, target, code in wrong:
        answer = await jobs_api.patch("jobs/nightly/steps/first", patch)
        assert problem(answer) == (400, code), (patch, answer.text)
        assert target in {None, answer.json()["error"]["target"]}, patch
    absent = await jobs_api.patch("jobs/nightly/steps/none", {"guard": True})
    assert problem(absent) == (404, "ResourceNotFound")


async def test_the_attempts_of_runs_are_changed_field_by_field_and_removed(jobs_api):
    rules = {"enabled": True, "backoffSeconds": [1, 2]}
    await jobs_api.made("jobs/nightly", {"properties": JOB | {"runAttempts": rules}})

    more = await changed(jobs_api, "jobs/nightly", {"runAttempts": {"maxWithProgress": 3}})
    assert more["runAttempts"] == rules | {"maxWithProgress": 3}
    answer = await jobs_api.patch("jobs/nightly", {"runAttempts": {"enabled": None}})
    assert answer.status_code == 400
    assert answer.json()["error"]["target"] == "properties.runAttempts.enabled"
    assert "runAttempts" not in await changed(jobs_api, "jobs/nightly", {"runAttempts": None})


async def test_a_schedule_is_replaced_and_everything_else_of_the_job_stays(jobs_api):
    made = await jobs_api.made("jobs/nightly", {"properties": JOB})
    before = await jobs_api.call.get(jobs_api.url("jobs/nightly/schedule"), params=SQL)
    new = {"type": "Recurring", "cron": "0 3 * * *", "timeZone": "Europe/Berlin"}

    replaced = await jobs_api.put(
        "jobs/nightly/schedule", new, **{"If-Match": before.headers["etag"]}
    )
    again = await jobs_api.put("jobs/nightly/schedule", {}, **{"If-Match": before.headers["etag"]})

    job = await jobs_api.get("jobs/nightly")
    after = job.json()
    assert (before.status_code, replaced.status_code) == (200, 200), replaced.text
    assert before.json() == made["properties"]["schedule"]
    assert problem(again) == (412, "PreconditionFailed")
    assert replaced.json() == after["properties"]["schedule"] == {
        **new, "enabled": False, "overlap": "skipTarget", "misfire": {"policy": "runOnce"},
        "startTime": "0001-01-01T00:00:00Z", "endTime": "9999-12-31T11:59:59Z",
    }  # fmt: skip
    assert replaced.headers["etag"] == job.headers["etag"] != before.headers["etag"]
    assert {**after["properties"], "schedule": None} == {**made["properties"], "schedule": None}
    assert await refused(jobs_api, {"cron": "0 25 * * *"}) == (400, "cron")
    assert await refused(jobs_api, {"misfire": {"policy": "never"}}) == (400, "misfire.policy")
    assert await refused(jobs_api, {"intervall": "PT1H"}) == (400, "intervall")
    assert await refused(jobs_api, {"type": "Once", "interval": "PT1H"}) == (400, "interval")
    both = {"cron": "0 3 * * *", "interval": "PT1H"}
    assert (await refused(jobs_api, both))[0] == 400
    hourly = await jobs_api.put("jobs/nightly/schedule", {"interval": "PT1H"})
    assert (hourly.json()["type"], hourly.json()["interval"]) == ("Recurring", "PT1H")
    missing = await jobs_api.put("jobs/missing/schedule", new)
    assert problem(missing) == (404, "ResourceNotFound")


async def refused(jobs_api, schedule):
    """Status and field of a refused schedule."""
    answer = await jobs_api.put("jobs/nightly/schedule", schedule)
    error = answer.json()["error"]
    return answer.status_code, error.get("target") or error["details"][0]["target"]
