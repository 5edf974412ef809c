"""Which servers jobs may run on: the right useAsTarget at each place where a server becomes a target."""

import json
from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest

from fsm import directory
from fsm import store as machines
from fsm.directory import Recipient
from fsm.runner import Runner
from fsm.store import resource_by_key
from nodeagent.protocol import DirectorySynced
from tests.support import principals
from tests.support import arm
from tests.support.executions import Job, some_targets
from tests.support.jobs_fixture import ACCOUNT, SERVER, SQL, a_step, start_jobs_api, ref
from tests.support.outcomes import an_engine
from workflows import engine_requests
from workflows.roles import CONTRIBUTOR, JOB_OPERATOR, READER

pytestmark = pytest.mark.newest

ELSEWHERE = f"{arm.SUBSCRIPTION}/resourceGroups/g2"
OTHER = f"{ELSEWHERE}/providers/Microsoft.Sql/servers/other"
LINKED, UNKNOWN = (403, "LinkedAuthorizationFailed"), (400, "InvalidTargetServer")
DONE = (200, "")
QUERY = {"targetGroup": "others", "sql": "select 1"}


def members(*given):
    return {"properties": {"members": list(given)}}


def server(name):
    return {"type": "SqlDatabase", "serverName": name, "databaseName": "d"}


def nested(group):
    return {"type": "TargetGroup", "targetGroup": ref(f"targetGroups/{group}")}


def outcome(answer):
    if answer.status_code in {200, 201}:
        return DONE
    return answer.status_code, arm.error(answer)


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    """With a server in another resource group, and a group and a job on it that its owner made."""
    async with start_jobs_api(settings, targets, tmp_path) as made:
        await a_server(made, OTHER, "db.example.org")
        await made.a_job()
        yield made


async def a_server(jobs_api, id, host):
    await arm.put(jobs_api.call, ELSEWHERE, {"location": "local"})
    body = {"location": "local", "properties": {"endpoint": {"host": host}}}
    await arm.put(jobs_api.call, id, body)
    await jobs_api.metadata(
        "update resource set provisioning_state = 'Succeeded' where lower(id) = $1", id.lower()
    )


async def others(jobs_api):
    await jobs_api.made("targetGroups/others", members(server("other")))
    step = a_step(targetGroup=ref("targetGroups/others"))
    await jobs_api.made("jobs/there", {})
    await jobs_api.made("jobs/there/steps/first", step)


async def a_caller(jobs_api, *grants, **token):
    """A client with these roles: pairs of scope and role."""
    path = f"{principals.AUTHORIZATION}/serviceTokens/t{uuid4().hex[:8]}"
    made = (await arm.put(jobs_api.call, path, {"properties": token})).json()["properties"]
    for scope, role in grants:
        await principals.grant(jobs_api.call, scope, made["principalId"], role.id)
    return replace(jobs_api, call=arm.calling(jobs_api.app, made["token"]))


async def psql(jobs_api, query, *args):
    """As the administrator of the control database."""
    role = jobs_api.targets.administrator
    connection = await asyncpg.connect(jobs_api.targets.url(jobs_api.names[0], role))
    try:
        return await connection.fetch(query, *args)
    finally:
        await connection.close()


async def directory_of(jobs_api):
    rows = await jobs_api.control("select name from jobs_internal.server_directory order by name")
    return [row["name"] for row in rows]


async def a_plan(jobs_api, server_id=OTHER):
    """A stored plan of the job `there`, as the engine would have stored it."""
    plan = uuid4()
    await jobs_api.control(
        "with job as (select * from jobs_internal.job where name = 'there'), snapshot as ("
        " insert into jobs_internal.snapshot (snapshot_id, target_group_id, group_hash, directory_revision, targets,"
        " targets_hash) values ($1, $1, '', 1, 1, '') returning snapshot_id), target as ("
        " insert into jobs_internal.snapshot_target (snapshot_id, ordinal, target_id, target_type, server_id,"
        " server_name, database_name, rule) select snapshot_id, 1, $1, 'SqlDatabase', $2, 'other', 'd', $1 from snapshot"
        "), plan as (insert into jobs_internal.plan (plan_id, job_id, job_version, document, created_by)"
        " select $1, job_id, version, '{}', 'anna' from job returning plan_id)"
        " insert into jobs_internal.plan_snapshot select plan_id, 1, snapshot_id from plan, snapshot",
        plan,
        server_id,
    )  # fmt: skip
    return {"planId": str(plan)}


async def each_way(caller, plan, *, closed=True):
    """Every request that makes the servers of the group `others` targets, with its outcome."""
    step = a_step(targetGroup=ref("targetGroups/others"))
    enabled = {"properties": {"schedule": {"enabled": True, "interval": "PT5M"}}}
    named = {"targets": [{"serverName": "other", "databaseName": "d"}]}
    async with caller.call:
        # Where it is open, the engine would have to answer.
        planned = {"plan": outcome(await caller.post("jobs/there/plan"))} if closed else {}
        return {
            **planned,
            "start of a plan": outcome(await caller.post("jobs/there/start", plan)),
            "start on a named target": outcome(await caller.post("jobs/there/start", named)),
            "query of a named target": outcome(
                await caller.post("queries", {"sql": "select 1", **named})
            ),
            "member": outcome(await caller.put("targetGroups/g", members(server("other")))),
            "nested": outcome(await caller.put("targetGroups/h", members(nested("others")))),
            "step": outcome(await caller.put("jobs/nightly/steps/next", step)),
            "patched step": outcome(
                await caller.patch("jobs/there/steps/first", {"action": {"value": "select 2"}})
            ),
            "query": outcome(await caller.post("queries", QUERY)),
            "start": outcome(await caller.post("jobs/there/start")),
            "start by id": outcome(await caller.put(f"jobs/there/executions/{uuid4()}")),
            "schedule": outcome(await caller.put("jobs/there", enabled)),
            "patched schedule": outcome(await caller.patch("jobs/there", enabled["properties"])),
            "allow": outcome(await caller.post("allowServer", {"server": "other"})),
        }


async def each_examination(jobs_api, caller):
    """Requests to open sessions at the server of the group `others`, and all that the engine is asked."""
    async with caller.call:
        outcomes = [
            outcome(await caller.post("targetGroups/others/doctor")),
            outcome(await caller.post("credentials/there/test", {"servers": ["other"]})),
            outcome(await caller.post("credentials/there/test")),
        ]
    rows = await jobs_api.control("select kind, args from jobs_internal.request order by asked_at")
    return outcomes, [(row["kind"], json.loads(row["args"])) for row in rows]


async def test_a_login_is_tried_only_at_servers_that_the_caller_may_use(jobs_api, monkeypatch):
    monkeypatch.setattr(engine_requests, "PATIENCE", 0.1)
    await others(jobs_api)
    body = {"properties": {"username": "u", "password": "p"}}
    await jobs_api.made("credentials/there", body)
    stranger = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))
    reader = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR), (OTHER, READER))
    user = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR), (OTHER, CONTRIBUTOR))
    asked = (503, "EngineNotAnswering")  # no engine runs

    first, by_stranger = await each_examination(jobs_api, stranger)
    second, by_reader = await each_examination(jobs_api, reader)
    third, by_user = await each_examination(jobs_api, user)
    await a_server(jobs_api, f"{OTHER}-unused", "unused.example.org")
    unused = await jobs_api.post("credentials/there/test", {"servers": ["other-unused"]})

    assert (first, second, third) == (
        [UNKNOWN, UNKNOWN, asked], [LINKED, LINKED, asked], [asked, asked, asked],
    )  # fmt: skip
    assert by_stranger == [("login", {"credential": "there", "serverIds": [SERVER]})]
    assert by_reader[1:] == [("login", {"credential": "there", "serverIds": []})]
    at_other = {"credential": "there", "serverIds": [OTHER]}
    assert by_user[2:] == [
        ("doctor", {"targetGroup": "others"}), ("login", at_other), ("login", at_other),
    ]  # fmt: skip
    assert outcome(unused) == UNKNOWN
    assert "does not use 'other-unused' as a target" in unused.text


async def test_a_server_that_the_caller_reads_but_may_not_use_becomes_no_target_on_any_way(
    jobs_api,
):
    await others(jobs_api)
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR), (OTHER, READER))

    outcomes = await each_way(caller, await a_plan(jobs_api))

    assert outcomes == dict.fromkeys(outcomes, LINKED)


async def test_a_server_that_the_caller_may_not_read_becomes_no_target_on_any_way(jobs_api):
    await others(jobs_api)
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR))

    outcomes = await each_way(caller, await a_plan(jobs_api))

    assert outcomes == dict.fromkeys(outcomes, UNKNOWN)


async def test_with_the_right_on_the_server_every_way_is_open(jobs_api):
    await others(jobs_api)
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR), (OTHER, CONTRIBUTOR))

    outcomes = await each_way(caller, await a_plan(jobs_api), closed=False)

    assert outcomes == dict.fromkeys(outcomes, DONE)


async def is_planned(jobs_api, run, server_id):
    """The run has reached its first step, with one target there."""
    async with an_engine(jobs_api) as owner:
        query = """
            select j.job_id, j.name, s.target_group_id
              from jobs_internal.job_execution x
              join jobs_internal.job j using (job_id)
              join jobs_internal.job_step s on (s.job_id, s.version) = (x.job_id, x.job_version)
             where x.job_execution_id = $1
            """
        await some_targets(owner, Job(*await owner.fetchrow(query, run)), run, 1)
        await owner.execute("update jobs_internal.snapshot_target set server_id = $1", server_id)


async def is_a_rerun(jobs_api, run, server_id):
    await jobs_api.control(
        "insert into jobs_internal.chosen_target (job_execution_id, step_id, target_id, target_type, server_id,"
        " server_name, rule) values ($1, 1, $1, 'SqlDatabase', $2, 'other', $1)",
        run,
        server_id,
    )


@pytest.mark.parametrize("has_targets", [is_planned, is_a_rerun])
async def test_the_targets_of_a_run_need_the_right_wherever_its_job_leads_by_now(
    jobs_api, has_targets
):
    await others(jobs_api)
    name = (await jobs_api.post("jobs/there/start")).json()["name"]
    await has_targets(jobs_api, name, OTHER)
    await jobs_api.made("targetGroups/others", members(server("srv")))

    async def each(*grants):
        caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR), *grants)
        async with caller.call:
            assert outcome(await caller.post("jobs/there/start")) == DONE
            run = f"jobs/there/executions/{name}"
            rerun = outcome(await caller.post(f"{run}/rerun", {"only": ["failed"]}))
            return {rerun, outcome(await caller.post(f"{run}/resume"))}

    assert await each() == {UNKNOWN}
    assert await each((OTHER, READER)) == {LINKED}
    assert await each((OTHER, JOB_OPERATOR)) == {(400, "ElasticJobsOperationFailed")}


async def test_a_run_goes_on_only_for_those_who_may_use_the_servers_of_its_coming_steps(jobs_api):
    await others(jobs_api)
    run = (await jobs_api.post("jobs/there/start")).json()["name"]
    await jobs_api.made("jobs/there/steps/first", a_step())  # the run keeps the version before
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))

    async with caller.call:
        refused = await caller.post(f"jobs/there/executions/{run}/resume")

    assert outcome(refused) == UNKNOWN


async def test_a_group_inside_a_group_inside_a_group_hides_no_server(jobs_api):
    await others(jobs_api)
    await jobs_api.made("targetGroups/one", members(nested("others")))
    await jobs_api.made("targetGroups/two", members(nested("one")))
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR))

    async with caller.call:
        step = a_step(targetGroup=ref("targetGroups/two"))
        refused = await caller.put("jobs/nightly/steps/next", step)

    assert outcome(refused) == UNKNOWN


async def test_rows_that_are_read_at_run_time_need_every_server_of_the_account(jobs_api):
    await others(jobs_api)
    query = {"type": "SqlQuery", "serverName": "srv", "databaseName": "d", "query": "select 1"}
    await jobs_api.made("targetGroups/rows", members(query))
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))

    async with caller.call:
        step = a_step(targetGroup=ref("targetGroups/rows"))
        refused = await caller.put("jobs/nightly/steps/next", step)
        assert "other" not in refused.text
        before = await jobs_api.delete("jobs/there/steps/first")
        await jobs_api.delete("targetGroups/others")
        removed = await jobs_api.post("disallowServer", {"server": "other"})
        made = await caller.put("jobs/nightly/steps/next", step)

    assert outcome(refused) == UNKNOWN
    assert (before.status_code, outcome(removed), outcome(made)) == (200, DONE, DONE)


async def test_a_control_database_of_an_older_version_needs_every_server_of_the_account(jobs_api):
    await others(jobs_api)
    await jobs_api.control("drop function jobs_internal.reached_servers(text, text[])")
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))

    async with caller.call:
        refused = await caller.post("jobs/nightly/start")
    started = await jobs_api.post("jobs/nightly/start")

    assert (outcome(refused), outcome(started)) == (UNKNOWN, DONE)


async def test_an_unknown_and_an_unreadable_server_get_the_same_answer_without_a_name(jobs_api):
    """Attack 23, and no oracle: neither ids nor names of what the caller may not read."""
    foreign = "/subscriptions/s2/resourceGroups/g9/providers/Microsoft.Sql/servers/hidden"
    await arm.put(jobs_api.call, "/subscriptions/s2", {})
    await arm.put(jobs_api.call, foreign.rpartition("/providers")[0], {"location": "local"})
    await a_server(jobs_api, foreign, "far.example.org")
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR))
    names = ["nothing", "other", "db.example.org", "hidden", "othe", "hidde"]

    async with caller.call:
        answers = {
            name: await caller.put("targetGroups/g", members(server(name))) for name in names
        }
        far = server("hidden") | {"subscriptionId": "s2"}
        answers["hidden in s2"] = await caller.put("targetGroups/g", members(far))
        near = await caller.put("privateEndpoints/e", a_way(OTHER))
        missing = await caller.put("privateEndpoints/e", a_way(OTHER + "x"))

    told = {
        (outcome(answer), answer.json()["error"]["message"].replace(f"'{name.split()[0]}'", "…"))
        for name, answer in answers.items()
    }
    assert len(told) == 1
    assert told.pop()[0] == UNKNOWN
    assert (outcome(near), outcome(missing)) == (UNKNOWN, UNKNOWN)


def a_way(id):
    return {"properties": {"targetServerAzureResourceId": id}}


async def test_a_host_name_of_a_server_that_the_caller_may_not_read_is_unknown_too(jobs_api):
    for number in (1, 2):
        path = f"{ELSEWHERE}/providers/Microsoft.Sql/servers/shared{number}"
        await a_server(jobs_api, path, "shared.example.org")
        await jobs_api.post("allowServer", {"server": f"shared{number}"})
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR), (path, CONTRIBUTOR))

    async with caller.call:
        by_host = await caller.put("targetGroups/g", members(server("shared.example.org")))
        by_name = await caller.put("targetGroups/g", members(server("shared2")))

    assert (outcome(by_host), outcome(by_name)) == (UNKNOWN, DONE)


async def test_a_request_with_many_unknown_servers_is_told_about_the_first_ones(jobs_api):
    body = members(*(server(f"unknown-{n}") for n in range(500)))

    refused = await jobs_api.put("targetGroups/g", body)

    assert outcome(refused) == UNKNOWN
    assert len(refused.json()["error"]["details"]) == 20


async def test_a_hint_names_only_servers_that_the_caller_may_read(jobs_api):
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))

    async with caller.call:
        answer = await caller.put("targetGroups/g", members(server("srw"), server("othr")))

    told = " ".join(each["message"] for each in answer.json()["error"]["details"])
    assert "Did you mean srv?" in told
    assert "other" not in told


async def test_a_server_of_another_subscription_is_no_target_even_for_those_who_may_use_it(
    jobs_api,
):
    foreign = "/subscriptions/s2/resourceGroups/g9/providers/Microsoft.Sql/servers/far"
    await arm.put(jobs_api.call, "/subscriptions/s2", {})
    await arm.put(jobs_api.call, foreign.rpartition("/providers")[0], {"location": "local"})
    await a_server(jobs_api, foreign, "far.example.org")

    assert outcome(await jobs_api.put("targetGroups/g", members(server("far")))) == UNKNOWN
    assert "far" not in await directory_of(jobs_api)


async def test_the_name_of_a_server_is_not_lent_to_one_whose_host_is_called_so(jobs_api):
    await others(jobs_api)
    mine = f"{ELSEWHERE}/providers/Microsoft.Sql/servers/mine"
    await a_server(jobs_api, mine, "other.database.windows.net")
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR), (mine, CONTRIBUTOR))

    async with caller.call:
        azure = "other.database.windows.net"
        refused = await caller.put("targetGroups/g", members(server(azure)))
        made = await caller.put("targetGroups/g", members(server("mine")))

    assert (outcome(refused), outcome(made)) == (UNKNOWN, DONE)


async def test_psql_names_only_servers_that_were_put_into_the_directory(jobs_api):
    group = "select jobs.sp_add_target_group('g')"
    member = (
        "select jobs.sp_add_target_group_member('g', target_type => 'SqlServer', server_name => $1)"
    )
    await psql(jobs_api, group)

    await psql(jobs_api, member, "srv")  # that of the control database is there from the start
    with pytest.raises(asyncpg.PostgresError) as refused:
        await psql(jobs_api, member, "other")
    allowed = await jobs_api.post("allowServer", {"server": "other"})
    again = await jobs_api.post("allowServer", {"server": "other"})
    await psql(jobs_api, member, "other")

    assert refused.value.sqlstate == "MU015"
    assert allowed.json() == {"server": "other", "allowed": True, "changed": True}
    assert again.json()["changed"] is False


async def test_naming_a_server_through_rest_puts_it_into_the_directory(jobs_api):
    before = await directory_of(jobs_api)

    await jobs_api.made("targetGroups/g", members(server("db.example.org")))

    assert (before, await directory_of(jobs_api)) == (["srv"], ["other", "srv"])


async def test_a_refused_request_puts_no_server_into_the_directory(jobs_api):
    body = members(server("other"), server("nowhere"))

    assert outcome(await jobs_api.put("targetGroups/g", body)) == UNKNOWN
    assert await directory_of(jobs_api) == ["srv"]


async def test_a_job_with_one_refused_step_puts_no_server_into_the_directory(jobs_api):
    third = f"{ELSEWHERE}/providers/Microsoft.Sql/servers/third"
    await a_server(jobs_api, third, "third.example.org")
    await others(jobs_api)
    output = {"databaseName": "d", "tableName": "t", "serverName": "third"}
    allowed = {"name": "a", **a_step(output=output)["properties"]}
    refused = a_step(targetGroup=ref("targetGroups/others"))["properties"]
    steps = [allowed, {**refused, "name": "b"}, {**refused, "name": "c"}]
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR), (third, JOB_OPERATOR))

    async with caller.call:
        both = await caller.put("jobs/new", {"properties": {"steps": steps}})
        before = await directory_of(jobs_api)
        alone = await caller.put("jobs/new", {"properties": {"steps": [allowed]}})

    assert outcome(both) == UNKNOWN
    assert "properties.steps[1].targetGroup" in both.text
    assert before == ["other", "srv"]
    assert outcome(alone) == DONE
    assert await directory_of(jobs_api) == ["other", "srv", "third"]


@pytest.mark.parametrize("method", ["put", "patch"])
async def test_a_schedule_needs_no_right_on_the_servers_of_steps_that_are_replaced(
    jobs_api, method
):
    await others(jobs_api)
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))
    schedule = {"schedule": {"enabled": True, "interval": "PT5M"}}

    async def write(*steps):
        properties = {**schedule, "steps": list(steps)} if steps else schedule
        body = properties if method == "patch" else {"properties": properties}
        return outcome(await getattr(caller, method)("jobs/there", body))

    async with caller.call:
        assert await write() == UNKNOWN
        kept = a_step(targetGroup=ref("targetGroups/others"))["properties"]
        assert await write({"name": "kept", **kept}) == UNKNOWN
        assert await write({"name": "new", **a_step()["properties"]}) == DONE
        assert await write() == DONE


async def test_the_own_server_is_no_target_when_the_creator_may_not_use_it(jobs_api):
    second = f"{SERVER}/jobAgents/second"
    database = f"{SERVER}/databases/control_second"
    await arm.put(jobs_api.call, database, {"location": "local"})
    await jobs_api._until(database, "provisioning_state = 'Succeeded'")
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR), scope=second)

    async with caller.call:
        body = {"location": "local", "properties": {"databaseId": database}}
        await arm.put(caller.call, second, body)
    await jobs_api._until(second, "m.scratch ? 'installed'")

    assert (await jobs_api.seen(f"{second}/allowedServers"))["value"] == []
    own = (await jobs_api.seen("allowedServers"))["value"]
    assert [each["name"] for each in own] == ["srv"]


async def test_the_list_of_servers_shows_those_that_the_caller_may_read(jobs_api):
    await jobs_api.post("allowServer", {"server": "other"})
    caller = await a_caller(jobs_api, (SERVER, READER))

    async with caller.call:
        shown = (await caller.seen("allowedServers"))["value"]

    assert [each["name"] for each in shown] == ["srv"]
    everything = (await jobs_api.seen("allowedServers"))["value"]
    assert [each["id"] for each in everything] == [SERVER, OTHER]


async def test_a_server_that_the_caller_may_not_read_is_not_taken_from_an_account(jobs_api):
    await others(jobs_api)
    caller = await a_caller(jobs_api, (ACCOUNT, CONTRIBUTOR))
    names = ["other", "nothing"]

    async with caller.call:
        answers = [
            await caller.post("disallowServer", {"server": name, "force": force})
            for name in names
            for force in (False, True)
        ]

    assert {outcome(answer) for answer in answers} == {UNKNOWN}
    messages = [answer.json()["error"]["message"] for answer in answers]
    assert messages[0].replace("other", "nothing") == messages[2]
    assert await directory_of(jobs_api) == ["other", "srv"]


async def test_databases_of_a_server_that_the_caller_may_not_use_are_not_listed(jobs_api):
    await others(jobs_api)
    caller = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR))

    async with caller.call:
        resolved = await caller.post("targetGroups/others/resolve")
        examined = await caller.post("targetGroups/others/doctor")

    assert (outcome(resolved), outcome(examined)) == (UNKNOWN, UNKNOWN)


async def test_a_server_is_taken_from_an_account_unless_groups_name_it(jobs_api):
    await others(jobs_api)

    refused = await jobs_api.post("disallowServer", {"server": "other"})
    forced = await jobs_api.post("disallowServer", {"server": "OTHER", "force": True})
    again = await jobs_api.post("disallowServer", {"server": "other"})

    assert outcome(refused) == (409, "ServerInUse")
    assert refused.json()["error"]["details"][0]["target"] == ref("targetGroups/others")
    assert forced.json() == {"server": "OTHER", "allowed": False, "changed": True}
    assert again.json()["changed"] is False
    assert await directory_of(jobs_api) == ["srv"]


async def test_a_deleted_server_leaves_the_directory(jobs_api):
    await jobs_api.post("allowServer", {"server": "other"})
    sent = []

    async def send(command):
        sent.append([each.name for each in command.servers])
        return DirectorySynced(applied=True, revision=command.revision)

    async def synced():
        account = await resource_by_key(jobs_api.plane.db, ACCOUNT.lower())
        recipient = Recipient(account.uid, uuid4(), "unused")
        await directory.sync(jobs_api.plane, account, recipient, send)

    await synced()
    assert (await jobs_api.call.delete(OTHER, params=SQL)).status_code == 202
    await gone(jobs_api, OTHER)
    await a_server(jobs_api, OTHER, "db.example.org")  # another one of the same name
    await synced()

    assert sent == [["srv", "other"], ["srv"]]


async def gone(jobs_api, id):
    runner = Runner(jobs_api.services, "test")
    for _ in range(100):
        for uid in await machines.due(jobs_api.plane.db, 50):
            await runner.turn(uid)
        if not await jobs_api.metadata("select 1 from resource where key = $1", id.lower()):
            return
    raise AssertionError(f"{id} is still there")


async def test_a_job_operator_starts_and_queries_where_his_role_covers_the_servers(jobs_api):
    await others(jobs_api)
    operator = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR), (OTHER, JOB_OPERATOR))

    async with operator.call:
        started = await operator.post("jobs/there/start")
        queried = await operator.post("queries", QUERY)
        written = await operator.post("queries", QUERY | {"readOnly": False})
        named = await operator.put("targetGroups/g", members(server("other")))
        allowed = await operator.post("allowServer", {"server": "other"})

    assert (outcome(started), outcome(queried)) == (DONE, DONE)
    denied = (403, "AuthorizationFailed")
    assert [outcome(each) for each in (written, named, allowed)] == [denied] * 3


async def test_a_job_operator_names_only_targets_that_the_account_has(jobs_api):
    # given a server that the caller may use, and that is not in the directory of the account
    caller = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR), (OTHER, JOB_OPERATOR))
    start = {"targets": [{"serverName": "other", "databaseName": "d"}]}
    # when he names it
    async with caller.call:
        refused = await caller.post("jobs/nightly/start", start)
    # then it is refused without a word about other servers, and the directory is as it was
    assert outcome(refused) == UNKNOWN
    assert "muster account allow-server" in refused.json()["error"]["message"]
    assert "Perhaps" not in refused.text
    assert await directory_of(jobs_api) == ["srv"]


async def test_a_token_that_is_scoped_to_a_job_starts_it_where_its_roles_allow_that(jobs_api):
    await others(jobs_api)
    scope = ref("jobs/there")
    both = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR), (OTHER, JOB_OPERATOR), scope=scope)
    one = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR), scope=scope)

    async with both.call, one.call:
        outcomes = [outcome(await each.post("jobs/there/start")) for each in (both, one)]
        elsewhere = outcome(await both.post("jobs/nightly/start"))

    assert outcomes == [DONE, UNKNOWN]
    assert elsewhere == (403, "AuthorizationFailed")


async def test_a_group_that_names_a_thousand_servers_by_host_is_checked_in_time(jobs_api):
    """The names meet the servers by equality: each with each would end at the statement timeout."""
    await jobs_api.metadata(
        "insert into resource (uid, key, id, type, name, parent_key, subscription_key, group_key, tenant_id, location,"
        " tags, properties, observed, sealed, provisioning_state, created_by, created_by_type, modified_by,"
        " modified_by_type)"
        " select gen_random_uuid(), key || i, id || i, type, name || i, parent_key, subscription_key, group_key,"
        " tenant_id, location, tags, jsonb_build_object('endpoint', jsonb_build_object('host', i || '.example.org')),"
        " observed, sealed, provisioning_state, created_by, created_by_type, modified_by, modified_by_type"
        " from resource, generate_series(1, 1500) i where lower(id) = $1",
        OTHER.lower(),
    )
    given = members(*(server(f"{number}.EXAMPLE.org") for number in range(1, 1501)))

    assert outcome(await jobs_api.put("targetGroups/many", given)) == DONE


async def test_a_host_name_that_stands_for_another_server_in_the_account_starts_nothing(jobs_api):
    for number in (1, 2):
        path = f"{ELSEWHERE}/providers/Microsoft.Sql/servers/shared{number}"
        await a_server(jobs_api, path, "shared.example.org")
    await jobs_api.post("allowServer", {"server": "shared1"})
    operator = await a_caller(jobs_api, (ACCOUNT, JOB_OPERATOR), (path, CONTRIBUTOR))
    place = {"serverName": "shared.example.org", "databaseName": "d"}

    async with operator.call:
        started = await operator.post("jobs/nightly/start", {"targets": [place]})

    assert outcome(started) == UNKNOWN
    assert await jobs_api.control("select from jobs_internal.chosen_target") == []


async def test_the_server_of_an_output_needs_the_right_however_the_run_is_started(jobs_api):
    output = {"serverName": "other", "databaseName": "out", "tableName": "t"}
    await jobs_api.made("jobs/there", {})
    await jobs_api.made("jobs/there/steps/first", a_step(output=output))
    plan = await a_plan(jobs_api, SERVER)
    named = {"targets": [{"serverName": "srv", "databaseName": "d"}]}
    caller = await a_caller(jobs_api, (SERVER, CONTRIBUTOR))

    async with caller.call:
        refused = [
            outcome(await caller.post("jobs/there/start", body)) for body in ({}, named, plan)
        ]
    started = await jobs_api.post("jobs/there/start", named)

    assert refused == [UNKNOWN] * 3
    assert outcome(started) == DONE
