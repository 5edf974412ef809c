"""A job and all its steps in one request: one transaction, at most one new version."""

import pytest

from tests.support.jobs_fixture import a_step, ref, start_jobs_api

pytestmark = pytest.mark.newest


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        await made.a_job("other")
        yield made


def step(name, value="select 1", **more):
    return {"name": name, **a_step(value, **more)["properties"]}


async def steps_of(jobs_api, job="nightly"):
    listed = (await jobs_api.seen(f"jobs/{job}/steps"))["value"]
    return [(each["name"], each["properties"]["action"]["value"]) for each in listed]


async def versions_of(jobs_api, job="nightly"):
    return sorted(
        int(each["name"]) for each in (await jobs_api.seen(f"jobs/{job}/versions"))["value"]
    )


async def test_a_job_is_created_with_its_steps(jobs_api):
    body = {
        "properties": {"description": "d", "steps": [step("a"), step("b", "select 2"), step("c")]}
    }

    made = await jobs_api.made("jobs/nightly", body)

    assert "steps" not in made["properties"]
    assert await steps_of(jobs_api) == [("a", "select 1"), ("b", "select 2"), ("c", "select 1")]
    assert await versions_of(jobs_api) == [0, made["properties"]["version"]]


@pytest.mark.parametrize("method", ["put", "patch"])
async def test_the_list_is_whole_and_makes_one_version(jobs_api, method):
    body = {"properties": {"description": "d", "steps": [step(each) for each in "abcd"]}}
    made = await jobs_api.made("jobs/nightly", body)
    old = (await jobs_api.seen("jobs/nightly/steps/b"))["properties"]

    listed = [step("d", "select 4"), step("new"), {"name": "B", **old}]
    change = {"description": "d", "steps": listed}
    if method == "put":
        changed = await jobs_api.made("jobs/nightly", {"properties": change})
    else:
        changed = (await jobs_api.patch("jobs/nightly", change)).json()

    assert await steps_of(jobs_api) == [("d", "select 4"), ("new", "select 1"), ("b", "select 1")]
    first, last = made["properties"]["version"], changed["properties"]["version"]
    assert await versions_of(jobs_api) == [0, first, last] and first < last
    current = await jobs_api.seen(f"jobs/nightly/versions/{last}/steps")
    assert [each["name"] for each in current["value"]] == ["d", "new", "b"]


async def test_the_same_again_changes_nothing(jobs_api):
    body = {"properties": {"steps": [step("a"), step("b", guard=True, rollout={"waves": [1]})]}}
    await jobs_api.made("jobs/nightly", body)
    before = await jobs_api.get("jobs/nightly")
    changes = "select action, detail from jobs_internal.audit where detail <> '{}'"
    audit = await jobs_api.control(changes)

    again = await jobs_api.put("jobs/nightly", body)

    assert (again.status_code, again.headers["etag"]) == (200, before.headers["etag"])
    assert await jobs_api.control(changes) == audit


async def test_without_steps_they_stay_and_an_empty_list_removes_them(jobs_api):
    await jobs_api.made("jobs/nightly", {"properties": {"steps": [step("a")]}})

    await jobs_api.made("jobs/nightly", {"properties": {"description": "new"}})
    assert await steps_of(jobs_api) == [("a", "select 1")]
    await jobs_api.patch("jobs/nightly", {"steps": []})
    assert await steps_of(jobs_api) == []


async def test_one_list_of_steps_replaces_another_that_shares_few_names(jobs_api):
    old = [step(f"old{n}") for n in range(60)]
    await jobs_api.made("jobs/nightly", {"properties": {"steps": old}})

    for names in (
        [f"new{n}" for n in range(60)],
        [f"other{n}" for n in range(100)],
        ["new", *(f"other{n}" for n in range(1, 100))],  # the first step alone is replaced
    ):
        await jobs_api.made("jobs/nightly", {"properties": {"steps": [step(n) for n in names]}})
        assert [name for name, _ in await steps_of(jobs_api)] == names


async def test_a_step_that_advances_per_target_keeps_its_place_after_a_new_first_step(jobs_api):
    second = step("b", advance="perTarget")
    await jobs_api.made("jobs/nightly", {"properties": {"steps": [step("a"), second]}})

    await jobs_api.made("jobs/nightly", {"properties": {"steps": [step("new"), second]}})

    assert [name for name, _ in await steps_of(jobs_api)] == ["new", "b"]
    kept = (await jobs_api.seen("jobs/nightly/steps/b"))["properties"]
    assert kept["advance"] == "perTarget"
    answer = await jobs_api.put("jobs/nightly", {"properties": {"steps": [second]}})
    assert answer.status_code == 400, answer.text
    assert [name for name, _ in await steps_of(jobs_api)] == ["new", "b"]


WRONG = (
    ([step("a"), step("A")], "properties.steps[1].name"),
    ([step("a"), {"name": "b", "action": {"value": "select 1"}}], "properties.steps[1].targetGroup"),
    ([step("a"), step("b", guard=True, transaction="none")], "properties.steps[1].guard"),
    ([step("a"), step("b", "begin; select 1")], "properties.steps[1].action.value"),
    ([step("a"), step("b", targetGroup="/nowhere")], "properties.steps[1].targetGroup"),
    ([step("a", stepsId=1)], "properties.steps[0].stepsId"),
    ([step("a/b")], "properties.steps[0].name"),
    ([step(f"s{n}") for n in range(101)], "properties.steps"),
)  # fmt: skip


@pytest.mark.parametrize(("steps", "target"), WRONG, ids=[target for _, target in WRONG])
@pytest.mark.parametrize("method", ["put", "patch"])
async def test_a_wrong_step_is_named_and_nothing_is_written(jobs_api, steps, target, method):
    send = jobs_api.patch if method == "patch" else jobs_api.put
    properties = {"description": "changed", "steps": steps}

    answer = await send(
        "jobs/other", properties if method == "patch" else {"properties": properties}
    )

    assert answer.status_code == 400, answer.text
    assert target in answer.text
    assert await steps_of(jobs_api, "other") == [("first", "select 1")]
    assert (await jobs_api.seen("jobs/other"))["properties"]["description"] == "d"


async def test_what_the_control_database_refuses_leaves_all_as_it_was(jobs_api):
    """The group is gone after the check of the API, so only the last statement of the transaction fails."""
    listed = [step("a"), step("b", targetGroup=ref("targetGroups/none"))]

    answer = await jobs_api.put(
        "jobs/other", {"properties": {"description": "new", "steps": listed}}
    )

    assert answer.status_code == 400, answer.text
    assert await steps_of(jobs_api, "other") == [("first", "select 1")]
    assert (await jobs_api.seen("jobs/other"))["properties"]["description"] == "d"


async def test_a_change_of_somebody_else_is_not_written_over(jobs_api):
    etag = (await jobs_api.get("jobs/other")).headers["etag"]
    await jobs_api.made("jobs/other/steps/first", a_step("select 2"))

    answer = await jobs_api.patch(
        "jobs/other", {"steps": [step("first", "select 3")]}, **{"If-Match": etag}
    )

    assert answer.status_code == 412
    assert await steps_of(jobs_api, "other") == [("first", "select 2")]
