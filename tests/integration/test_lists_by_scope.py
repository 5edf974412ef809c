"""What lists show to a caller whose rights begin below them: every list of the API is walked.

The caller is a Reader of the tenant whose token is scoped to one child.
"""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from api.endpoint import Endpoint, Kind, table
from api.resources import RESOURCES
from tests.support import principals
from tests.support import arm
from tests.support.executions import a_job
from tests.support.jobs_fixture import ACCOUNT, SERVER, SQL, a_step, start_jobs_api
from tests.support.outcomes import a_planned_run, an_engine, ran
from workflows.roles import READER

pytestmark = pytest.mark.newest

AUTHORIZATION = "providers/Microsoft.Authorization"
LISTS = {each.operation_id: each for each in table(RESOURCES) if each.kind is Kind.LIST}
SECOND = "/subscriptions/s2"
GROUP = f"{arm.SUBSCRIPTION}/resourceGroups/g2"
OTHER = f"{arm.GROUP}/providers/Microsoft.Sql/servers/other"
# The same for everyone who is let in; they show nothing of a resource.
OF_ALL = {"Operations_List"}
STUB = {"id", "name", "type"}


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        yield made


async def a_reader(jobs_api, scope):
    path = f"{principals.AUTHORIZATION}/serviceTokens/t{uuid4().hex[:8]}"
    made = (await arm.put(jobs_api.call, path, {"properties": {"scope": scope}})).json()[
        "properties"
    ]
    await principals.grant(jobs_api.call, "", made["principalId"], READER.id)
    return replace(jobs_api, call=arm.calling(jobs_api.app, made["token"]))


async def every_pair(jobs_api) -> dict[str, tuple[str, str]]:
    """Of each listed type two of the same parent, by the type: the first is the caller's."""
    pairs: dict[str, tuple[str, str]] = {}

    async def both(type, one, two, body=None):
        for path in (one, two):
            answer = await jobs_api.put(path, {} if body is None else body)
            assert answer.status_code in {200, 201}, (path, answer.text)
        pairs[type] = (jobs_api.url(one), jobs_api.url(two))

    await both("Microsoft.Resources/subscriptions", arm.SUBSCRIPTION, SECOND)
    await both("Microsoft.Resources/resourceGroups", arm.GROUP, GROUP, {"location": "local"})
    endpoint = {"host": "db.example.org"}
    other = {"location": "local", "properties": {"endpoint": endpoint}}
    await jobs_api.put(OTHER, other)
    pairs["Microsoft.Sql/servers"] = (SERVER, OTHER)
    await jobs_api.metadata("update resource set provisioning_state = 'Succeeded'")
    await jobs_api.an_account("second")
    pairs["Microsoft.Sql/servers/jobAgents"] = (ACCOUNT, f"{SERVER}/jobAgents/second")
    databases = (f"{SERVER}/databases/control_acc", f"{SERVER}/databases/control_second")
    pairs["Microsoft.Sql/servers/databases"] = databases
    pools = (f"{SERVER}/elasticPools/p1", f"{SERVER}/elasticPools/p2")
    await both("Microsoft.Sql/servers/elasticPools", *pools, {"location": "local"})
    inside = "Microsoft.Sql/servers/jobAgents"
    login = {"properties": {"username": "u", "password": "p"}}
    await both(f"{inside}/credentials", "credentials/login", "credentials/c2", login)
    member = {
        "type": "SqlServer",
        "serverName": "srv",
        "refreshCredential": jobs_api.url("credentials/login"),
    }
    groups = {"properties": {"members": [member]}}
    await both(f"{inside}/targetGroups", "targetGroups/fleet", "targetGroups/t2", groups)
    way = {"properties": {"targetServerAzureResourceId": SERVER}}
    await both(f"{inside}/privateEndpoints", "privateEndpoints/e1", "privateEndpoints/e2", way)
    hook = {
        "properties": {
            "url": "https://w.example.org",
            "secret": "0123456789abcdef",
            "events": ["failed"],
        }
    }
    await both(f"{inside}/webhooks", "webhooks/w1", "webhooks/w2", hook)
    await both(f"{inside}/jobs", "jobs/j1", "jobs/j2")
    await both(f"{inside}/jobs/steps", "jobs/j1/steps/s1", "jobs/j1/steps/s2", a_step())
    versions = (jobs_api.url("jobs/j1/versions/2"), jobs_api.url("jobs/j1/versions/1"))
    pairs[f"{inside}/jobs/versions"] = versions
    pairs[f"{inside}/jobs/versions/steps"] = (f"{versions[0]}/steps/s1", f"{versions[0]}/steps/s2")
    pairs |= await executions(jobs_api)
    for scope, name in (("", "Tenant"), (arm.SUBSCRIPTION, "Subscription"), (arm.GROUP, "ResourceGroup"),
                        (SERVER, "Server"), (databases[0], "Database"), (pools[0], "ElasticPool"),
                        (ACCOUNT, "JobAccount")):  # fmt: skip
        locks = [f"{scope}/{AUTHORIZATION}/locks/{each}" for each in ("l1", "l2")]
        for path in locks:
            await arm.put(jobs_api.call, path, {"properties": {"level": "CanNotDelete"}})
        pairs[f"locks at {name}"] = (locks[0], locks[1])
        roles = [f"{scope}/{AUTHORIZATION}/roleAssignments/"
                 + await principals.grant(jobs_api.call, scope, who, READER.id) for who in ("one", "two")]  # fmt: skip
        pairs[f"roleAssignments at {name}"] = (roles[0], roles[1])
    tokens = [f"/{AUTHORIZATION}/serviceTokens/{each}" for each in ("a", "b")]
    for path in tokens:
        await arm.put(jobs_api.call, path, {})
    pairs["Microsoft.Authorization/serviceTokens"] = (tokens[0], tokens[1])
    return pairs


async def executions(jobs_api) -> dict[str, tuple[str, str]]:
    type = "Microsoft.Sql/servers/jobAgents/jobs/executions"
    async with an_engine(jobs_api) as owner:
        job = await a_job(owner, "ran", steps=2)
        run, other = [await a_planned_run(owner, job, 2) for _ in range(2)]
        await ran(owner, run, 1, "Succeeded")
        plans = [
            await owner.fetchval(
                "insert into jobs_internal.plan (plan_id, job_id, job_version, document, created_by)"
                " select gen_random_uuid(), job_id, version, '{}', 'test' from jobs_internal.job_version"
                "  where job_id = $1 order by version desc limit 1 returning plan_id",
                job.id,
            )
            for _ in range(2)
        ]
        rows = await owner.fetch(
            "select d.target_id from jobs_internal.snapshot_target d"
            "  join jobs_internal.step_execution s using (snapshot_id)"
            " where s.job_execution_id = $1 and s.step_id = 1 order by d.ordinal",
            run,
        )
    base = jobs_api.url(f"jobs/ran/executions/{run}")
    one, two = (f"{base}/steps/step1/targets/{row['target_id']}" for row in rows)
    return {
        type: (base, jobs_api.url(f"jobs/ran/executions/{other}")),
        type.replace("executions", "plans"): (
            jobs_api.url(f"jobs/ran/plans/{plans[0]}"),
            jobs_api.url(f"jobs/ran/plans/{plans[1]}"),
        ),
        f"{type}/steps": (f"{base}/steps/step1", f"{base}/steps/step2"),
        f"{type}/steps/targets": (one, two),
        f"{type}/steps/targets/attempts": (f"{one}/attempts/1", f"{one}/attempts/2"),
    }


def case_of(endpoint: Endpoint) -> str:
    """What the list shows: a type, or an extension at a place."""
    if endpoint.type.name in {"locks", "roleAssignments"}:
        return f"{endpoint.type.name} at {endpoint.operation_id.partition('ListAt')[2]}"
    return endpoint.type.arm_type


def path_of(endpoint: Endpoint, child: str) -> str:
    """The collection, with the names of the ancestors of a child in it."""
    words = [word for word in child.split("/") if word]
    names = {words[at].lower(): words[at + 1] for at in range(0, len(words) - 1, 2)}
    made, before = [], ""
    for segment in endpoint.path:
        made.append(names[before.lower()] if segment.is_name else segment.text)
        before = segment.text
    return "/" + "/".join(made)


async def listed(reader, path) -> tuple[int, list[dict[str, Any]]]:
    answer = await reader.call.get(path, params=SQL)
    return answer.status_code, answer.json().get("value", [])


async def test_each_list_shows_the_one_child_that_the_caller_may_read_and_nothing_above_it(
    jobs_api,
):
    pairs = await every_pair(jobs_api)
    wrong: dict[str, Any] = {}
    walked = set()
    for name, endpoint in LISTS.items():
        child = pairs.get(case_of(endpoint), ("", ""))[0]
        if endpoint.view or not child:
            continue
        walked.add(name)
        reader = await a_reader(jobs_api, child)
        async with reader.call:
            status, items = await listed(reader, path_of(endpoint, child))
            whole = (await reader.call.get(child, params=SQL)).json()
        shown = [(each["id"].lower(), set(each) > STUB) for each in items]
        if status != 200 or shown != [(child.lower(), True)] or items[0]["name"] != whole["name"]:
            wrong[name] = (status, [each["id"] for each in items])

    assert wrong == {}
    rest = set(LISTS) - walked - {name for name, each in LISTS.items() if each.view} - OF_ALL
    assert rest == {
        name
        for name in LISTS
        if name.startswith(("RoleDefinitions_", "Providers_", "ActivityLogs_"))
    }


async def test_an_ancestor_is_listed_by_id_name_and_type_alone(jobs_api):
    pairs = await every_pair(jobs_api)
    pairs["Microsoft.Sql/servers/jobAgents/jobs"] = (f"{ACCOUNT}/jobs/ran", "")
    deepest = pairs["Microsoft.Sql/servers/jobAgents/jobs/executions/steps/targets/attempts"][0]
    reader = await a_reader(jobs_api, deepest)
    above = [
        (endpoint, pair[0])
        for endpoint in LISTS.values()
        if not endpoint.view
        and (pair := pairs.get(case_of(endpoint))) is not None
        and deepest.lower().startswith(pair[0].lower() + "/")
    ]

    async with reader.call:
        for endpoint, ancestor in above:
            status, items = await listed(reader, path_of(endpoint, ancestor))
            assert (status, items) == (
                200, [{"id": items[0]["id"], "name": ancestor.rpartition("/")[2], "type": endpoint.type.arm_type}],
            ), endpoint.operation_id  # fmt: skip
            assert items[0]["id"].lower() == ancestor.lower()
        refused = await reader.call.get(SERVER, params=SQL)

    assert [endpoint.type.name for endpoint, _ in above] == [
        "subscriptions", "resourceGroups", "servers", "servers", "jobAgents", "jobs", "executions", "steps", "targets",
    ]  # fmt: skip
    assert refused.status_code == 403


async def test_lists_beside_the_way_to_the_child_are_empty_and_views_above_it_are_closed(jobs_api):
    await jobs_api.a_job()
    reader = await a_reader(jobs_api, f"{ACCOUNT}/jobs/nightly")

    async with reader.call:
        beside = {kind: await listed(reader, f"{ACCOUNT}/{kind}") for kind in (
            "credentials", "targetGroups", "privateEndpoints")}  # fmt: skip
        closed = [await listed(reader, f"{ACCOUNT}/{view}") for view in (
            "executions", "history", "allowedServers")]  # fmt: skip
        own = await listed(reader, f"{ACCOUNT}/jobs/nightly/steps")

    assert set(map(str, beside.values())) == {"(200, [])"}
    assert [status for status, _ in closed] == [403] * 3
    assert [each["name"] for each in own[1]] == ["first"]


async def test_the_state_of_a_provider_is_for_readers_of_the_subscription(jobs_api):
    reader = await a_reader(jobs_api, SERVER)

    async with reader.call:
        _, items = await listed(reader, f"{arm.SUBSCRIPTION}/providers")

    assert [set(each) for each in items] == [{"id", "namespace"}] * len(items)
    _, whole = await listed(jobs_api, f"{arm.SUBSCRIPTION}/providers")
    assert {each["registrationState"] for each in whole} == {"Registered"}


async def test_pages_of_a_list_do_not_tell_how_much_is_left_out(jobs_api):
    for number in range(5):
        await arm.put(
            jobs_api.call,
            f"{arm.GROUP}/{AUTHORIZATION}/locks/g{number}",
            {"properties": {"level": "CanNotDelete"}},
        )
    own = f"{SERVER}/{AUTHORIZATION}/locks/z"
    await arm.put(jobs_api.call, own, {"properties": {"level": "CanNotDelete"}})
    reader = await a_reader(jobs_api, SERVER)

    async with reader.call:
        answer = await reader.call.get(
            f"{SERVER}/{AUTHORIZATION}/locks", params=SQL | {"$top": "1"}
        )

    assert [each["name"] for each in answer.json()["value"]] == ["z"]
    assert "nextLink" not in answer.json()
