"""What lies in an account, over REST: API, node agent and a real control database; no engine moves."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import msgspec
import pytest

from fsm import commands
from muster.core.failpoints import Crash, armed
from muster.core.sealing import belongs_to, open_sealed
from muster.core.settings import Secret
from tests.support import principals
from tests.support import arm
from tests.support.jobs_fixture import ACCOUNT, SERVER, a_step, start_jobs_api, ref
from workflows import engine_requests
from workflows.roles import CONTRIBUTOR, READER

pytestmark = pytest.mark.newest

PASSWORD = "a-password-that-nobody-sees"
LOGIN = {"properties": {"username": "runner", "password": PASSWORD}}
EVENTS = "select status from audit_event where action = $1 order by event_id"
PUT_JOB = "Microsoft.Sql/servers/jobAgents/jobs/write"


@pytest.fixture
async def jobs_api(settings, targets, tmp_path):
    async with start_jobs_api(settings, targets, tmp_path) as made:
        yield made


def members(*given):
    return {"properties": {"members": list(given)}}


def problem(answer):
    return answer.status_code, arm.error(answer)


async def test_each_definition_is_made_shown_listed_and_deleted(settings, targets, tmp_path):
    allowed = replace(settings, credential_references=("env:",))
    async with start_jobs_api(allowed, targets, tmp_path) as jobs_api:
        await each_definition(jobs_api)


async def each_definition(jobs_api):
    await jobs_api.a_job()
    bodies = {
        "credentials/c2": {"properties": {"username": "u", "reference": "env:FLEET"}},
        "targetGroups/g2": members(
            {"type": "SqlDatabase", "serverName": "srv", "databaseName": "x"}
        ),
        "jobs/nightly/steps/s2": a_step(),
        "jobs/j2": {},
        "privateEndpoints/p2": {"properties": {"targetServerAzureResourceId": SERVER}},
    }
    for path, body in bodies.items():
        made = await jobs_api.put(path, body)
        again = await jobs_api.put(path, body)
        shown = await jobs_api.get(path)
        listed = await jobs_api.seen(path.rpartition("/")[0])

        assert (made.status_code, again.status_code) == (201, 200), path
        assert again.headers["etag"] == made.headers["etag"] == shown.headers["etag"]
        assert made.json() == again.json() == shown.json()
        assert shown.json() in listed["value"]
        assert shown.json()["id"] == ref(path)
        gone = [(await jobs_api.delete(path)).status_code for _ in range(2)]
        assert gone == [200, 204], path
        assert problem(await jobs_api.get(path)) == (404, "ResourceNotFound")


async def test_a_job_without_a_word_has_azure_s_defaults(jobs_api):
    await jobs_api.made("jobs/plain", {})

    properties = (await jobs_api.seen("jobs/plain"))["properties"]

    assert (properties["description"], properties["version"]) == ("", 0)
    schedule = properties["schedule"]
    assert schedule["startTime"] == "0001-01-01T00:00:00Z"
    assert schedule["endTime"] == "9999-12-31T11:59:59Z"
    assert (schedule["type"], schedule["enabled"]) == ("Once", False)


async def test_a_step_has_its_defaults_and_all_it_was_given(jobs_api):
    await jobs_api.a_job()
    ours = {
        "transaction": "none", "idempotent": True, "retryOn": ["40001", "53"], "jitter": 0.5,
        "advance": "barrier", "onFailure": "continue",
        "settings": {"role": "owner_of_$(target_database_name)", "parameters": {"work_mem": "1MB"}},
        "executionOptions": {"maxParallelism": 7},
        "verify": {"sql": "select 3", "expect": "value", "value": 3, "skipIfHolds": True, "timeoutSeconds": 5},
    }  # fmt: skip

    await jobs_api.made("jobs/nightly/steps/rich", a_step(**ours))

    plain = (await jobs_api.seen("jobs/nightly/steps/first"))["properties"]
    assert plain["action"] == {"type": "TSql", "source": "Inline", "value": "select 1"}
    assert plain["executionOptions"] == {
        "timeoutSeconds": 43200, "retryAttempts": 10, "initialRetryIntervalSeconds": 1,
        "maximumRetryIntervalSeconds": 120, "retryIntervalBackoffMultiplier": 2,
    }  # fmt: skip
    rich = (await jobs_api.seen("jobs/nightly/steps/rich"))["properties"]
    assert rich["stepId"] == 2
    assert rich["executionOptions"]["maxParallelism"] == 7
    assert {name: rich[name] for name in ours if name != "executionOptions"} == {
        name: ours[name] for name in ours if name != "executionOptions"
    }
    sent_back = await jobs_api.put("jobs/nightly/steps/rich", {"properties": rich})
    assert sent_back.json()["properties"] == rich


async def test_a_step_that_goes_on_per_target_can_not_be_or_become_the_first_one(jobs_api):
    await jobs_api.a_job()
    chained = a_step(advance="perTarget")

    first = await jobs_api.put("jobs/nightly/steps/first", chained)
    await jobs_api.made("jobs/nightly/steps/second", chained)
    deleted = await jobs_api.delete("jobs/nightly/steps/first")
    moved = await jobs_api.patch("jobs/nightly/steps/second", {"stepId": 1})

    for answer in (first, deleted, moved):
        assert problem(answer) == (400, "OptionHasNoEffect"), answer.text
        assert "no step is before" in answer.json()["error"]["message"]
    second = (await jobs_api.seen("jobs/nightly/steps/second"))["properties"]
    assert (second["stepId"], second["advance"]) == (2, "perTarget")


async def test_an_output_is_shown_as_it_was_given(jobs_api):
    await jobs_api.a_job()
    login = ref("credentials/LOGIN")
    output = {
        "serverName": "SRV.database.windows.net", "databaseName": "out", "tableName": "T",
        "resourceGroupName": "G", "includeTarget": True, "onMismatch": "addColumn",
    }  # fmt: skip
    step = "jobs/nightly/steps/rich"

    await jobs_api.made(step, a_step(output=output | {"credential": login}))
    shown = output | {"type": "SqlDatabase", "schemaName": "dbo"}
    assert (await jobs_api.seen(step))["properties"]["output"] == shown | {"credential": login}
    await jobs_api.made(step, a_step(output=output | {"credential": ""}))
    assert (await jobs_api.seen(step))["properties"]["output"] == shown

    patch = {"output": {"schemaName": "s", "includeTarget": None, "credential": login}}
    assert (await jobs_api.patch(step, patch)).status_code == 200
    del shown["includeTarget"]
    patched = (await jobs_api.seen(step))["properties"]["output"]
    assert patched == shown | {"schemaName": "s", "credential": login}
    assert (await jobs_api.patch(step, {"output": None})).status_code == 200
    assert "output" not in (await jobs_api.seen(step))["properties"]
    await jobs_api.patch(step, {"output": output})
    assert (await jobs_api.seen(step))["properties"]["output"] == shown | {"includeTarget": True}


@pytest.mark.parametrize(
    ("change", "target", "code"),
    [
        ({"serverName": "nowhere"}, "output.serverName", "InvalidTargetServer"),
        ({"schemaName": "pg_catalog"}, "output.schemaName", "InvalidParameterValue"),
        ({"tableName": "t" * 64}, "output.tableName", "InvalidParameterValue"),
        ({"credential": ref("credentials/none")}, None, "InvalidParameterValue"),
        ({"type": "File"}, "output.type", "InvalidParameterValue"),
        ({"onMismatch": "drop"}, "output.onMismatch", "InvalidParameterValue"),
    ],
)
async def test_an_output_is_checked_when_it_is_written(jobs_api, change, target, code):
    await jobs_api.a_job()
    output = {"serverName": "srv", "databaseName": "out", "tableName": "t"} | change

    answer = await jobs_api.put("jobs/nightly/steps/rich", a_step(output=output))

    assert problem(answer) == (400, code), answer.text
    assert target is None or answer.json()["error"]["target"] == f"properties.{target}"
    assert (await jobs_api.seen("jobs/nightly"))["properties"]["version"] == 1


async def test_references_are_echoed_as_given_and_our_own_ids_are_canonical(jobs_api):
    await jobs_api.a_job()
    odd = ref("targetGroups/FLEET").replace("/resourceGroups/", "/RESOURCEGROUPS/")

    await jobs_api.made(
        "jobs/nightly/steps/second",
        a_step() | {"properties": {**a_step()["properties"], "targetGroup": odd}},
    )
    shown = (
        await jobs_api.call.get(
            ref("JOBS/Nightly/Steps/SECOND").lower(), params={"api-version": arm.SQL}
        )
    ).json()

    assert shown["properties"]["targetGroup"] == odd
    assert shown["id"] == ref("jobs/nightly/steps/second")


async def test_versions_keep_the_steps_as_they_were(jobs_api):
    await jobs_api.a_job()
    await jobs_api.made("jobs/nightly/steps/first", a_step("select 2"))

    versions = (await jobs_api.seen("jobs/nightly/versions"))["value"]
    before = await jobs_api.seen("jobs/nightly/versions/1/steps/first")
    now = (await jobs_api.seen("jobs/nightly/versions/2/steps"))["value"]

    assert [each["name"] for each in versions] == ["2", "1", "0"]
    assert "properties" not in versions[0]
    assert before["properties"]["action"]["value"] == "select 1"
    assert [each["properties"]["action"]["value"] for each in now] == ["select 2"]
    assert problem(await jobs_api.get("jobs/nightly/versions/9")) == (404, "ResourceNotFound")
    assert problem(await jobs_api.get("jobs/nightly/versions/x")) == (404, "ResourceNotFound")


async def test_an_etag_is_the_row_s_version_whoever_changes_it(jobs_api):
    first = await jobs_api.put("jobs/nightly", {})
    etag = first.headers["etag"]
    taken = await jobs_api.put("jobs/nightly", {}, **{"If-None-Match": "*"})
    absent = await jobs_api.put("jobs/other", {}, **{"If-Match": "*"})
    unchanged = await jobs_api.call.get(
        jobs_api.url("jobs/nightly"),
        params={"api-version": arm.SQL},
        headers={"If-None-Match": etag},
    )
    assert unchanged.status_code == 304
    assert problem(taken) == problem(absent) == (412, "PreconditionFailed")

    await jobs_api.control("select jobs.sp_update_job('nightly', description => 'by psql')")

    changed = await jobs_api.get("jobs/nightly")
    assert changed.headers["etag"] != etag
    assert changed.json()["properties"]["description"] == "by psql"
    stale = await jobs_api.put("jobs/nightly", {}, **{"If-Match": etag})
    assert problem(stale) == (412, "PreconditionFailed")
    fresh = await jobs_api.put("jobs/nightly", {}, **{"If-Match": changed.headers["etag"]})
    assert fresh.status_code == 200


async def test_one_idempotency_key_is_one_request(jobs_api):
    key = {"Idempotency-Key": "k1"}
    first = await jobs_api.put("jobs/nightly", {"properties": {"description": "a"}}, **key)
    await jobs_api.made("jobs/nightly", {"properties": {"description": "b"}})

    again = await jobs_api.put("jobs/nightly", {"properties": {"description": "a"}}, **key)
    other = await jobs_api.put("jobs/nightly", {"properties": {"description": "c"}}, **key)

    assert (again.status_code, again.json()) == (201, first.json())
    assert problem(other) == (409, "IdempotencyKeyMismatch")
    assert (await jobs_api.seen("jobs/nightly"))["properties"]["description"] == "b"


async def test_the_same_put_without_a_key_takes_effect_each_time(jobs_api):
    for description in ("a", "b", "a"):
        await jobs_api.made("jobs/nightly", {"properties": {"description": description}})

    assert (await jobs_api.seen("jobs/nightly"))["properties"]["description"] == "a"


async def test_a_repeated_start_is_the_same_execution(jobs_api):
    await jobs_api.a_job()
    same = {"x-ms-client-request-id": str(uuid4())}

    answers = await asyncio.gather(*(jobs_api.post("jobs/nightly/start", **same) for _ in range(4)))

    assert {each.status_code for each in answers} == {200}
    assert len({each.json()["name"] for each in answers}) == 1
    assert len((await jobs_api.seen("executions"))["value"]) == 1


@pytest.mark.parametrize("point", ["command.begun", "command.done", "command.settled"])
async def test_a_crash_anywhere_leaves_one_effect_and_the_first_answer(jobs_api, point):
    await jobs_api.a_job()
    same = {"x-ms-client-request-id": str(uuid4())}
    action = "Microsoft.Sql/servers/jobAgents/jobs/start/action"
    with armed({f"{point}@{action}": "crash times:1"}), pytest.raises(Crash):
        await jobs_api.post("jobs/nightly/start", **same)

    first = await jobs_api.post("jobs/nightly/start", **same)
    again = await jobs_api.post("jobs/nightly/start", **same)

    assert first.json() == again.json()
    runs = (await jobs_api.seen("jobs/nightly/executions"))["value"]
    assert [run["name"] for run in runs] == [first.json()["name"]]
    assert [row["status"] for row in await jobs_api.metadata(EVENTS, action)] == [
        "Started",
        "Succeeded",
    ]
    journal = "select count(*) from jobs_internal.command_journal where command = 'start_job'"
    assert (await jobs_api.control(journal))[0][0] == 1


@pytest.mark.parametrize(
    ("point", "outcome"), [("command.begun", "Failed"), ("command.done", "Succeeded")]
)
async def test_what_nobody_repeats_is_settled_by_the_journal(jobs_api, point, outcome):
    with armed({point: "crash times:1"}), pytest.raises(Crash):
        await jobs_api.put("jobs/nightly", {})
    assert [row["status"] for row in await jobs_api.metadata(EVENTS, PUT_JOB)] == ["Started"]

    await commands.sweep(jobs_api.services, older_than=timedelta(0))
    await commands.sweep(jobs_api.services, older_than=timedelta(0))

    assert [row["status"] for row in await jobs_api.metadata(EVENTS, PUT_JOB)] == [
        "Started",
        outcome,
    ]
    assert (await jobs_api.get("jobs/nightly")).status_code == (
        200 if outcome == "Succeeded" else 404
    )


async def test_a_refusal_is_settled_as_one_and_may_be_repeated(jobs_api):
    key = {"Idempotency-Key": "k"}
    first = await jobs_api.post("jobs/later/start", **key)
    await jobs_api.a_job("later")

    again = await jobs_api.post("jobs/later/start", **key)

    assert problem(first) == (404, "ResourceNotFound")
    assert again.status_code == 200
    action = "Microsoft.Sql/servers/jobAgents/jobs/start/action"
    seen = [row["status"] for row in await jobs_api.metadata(EVENTS, action)]
    assert seen == ["Started", "Failed", "Started", "Succeeded"]


async def test_a_server_that_the_account_was_not_told_of_yet_is_worth_another_try(jobs_api):
    login = {"properties": {"username": "u", "password": "p"}}
    await jobs_api.made("credentials/login", login)
    await jobs_api.control("delete from jobs_internal.server_directory where name = 'srv'")
    members = [{"type": "SqlServer", "serverName": "srv", "refreshCredential": ref("credentials/login")}]  # fmt: skip

    answer = await jobs_api.put("targetGroups/fleet", {"properties": {"members": members}})

    assert (answer.status_code, arm.error(answer)) == (503, "ServerNotYetKnown")
    assert answer.headers["retry-after"] == "1"


async def test_a_password_is_sealed_and_only_the_engine_s_key_opens_it(jobs_api, caplog):
    await jobs_api.made("credentials/login", LOGIN)
    stored = "select secret from jobs_internal.credential"
    (row,) = await jobs_api.control(stored)
    private_key, uid, identity = await jobs_api.private_key()

    opened = open_sealed(Secret(private_key), row["secret"], belongs_to(uid, identity, "Login"))

    assert opened.reveal() == PASSWORD
    for kept in ({"password": ""}, {}):
        changed = await jobs_api.put("credentials/login", {"properties": {"username": "x", **kept}})
        assert changed.json()["properties"] == {"username": "x"}
    assert (await jobs_api.control(stored))[0]["secret"] == row["secret"]
    everything = await jobs_api.control(
        "select j::text from jobs_internal.command_journal j"
    ) + await jobs_api.metadata("select a::text from audit_event a")
    assert PASSWORD not in str(everything)
    assert row["secret"] not in str(everything)


async def test_a_credential_needs_a_name_and_a_secret(jobs_api):
    nameless = await jobs_api.put(
        "credentials/c", {"properties": {"username": " u", "password": "p"}}
    )
    secretless = await jobs_api.put("credentials/c", {"properties": {"username": "u"}})
    reference = await jobs_api.put(
        "credentials/c", {"properties": {"username": "u", "reference": "env:X"}}
    )

    assert problem(nameless) == (400, "InvalidJobCredentialUsername")
    assert secretless.status_code == 400
    assert problem(reference) == (400, "CredentialReferenceNotAllowed")


async def test_a_reference_that_the_operator_allows_is_kept_and_shown(settings, targets, tmp_path):
    allowed = replace(settings, credential_references=("env:FLEET_", "file:/run/secrets/"))
    async with start_jobs_api(allowed, targets, tmp_path) as jobs_api:
        good = await jobs_api.put(
            "credentials/c", {"properties": {"username": "u", "reference": "env:FLEET_X"}}
        )
        climbing = {"username": "u", "reference": "file:/run/secrets/../../etc/shadow"}

        assert good.json()["properties"] == {"username": "u", "reference": "env:FLEET_X"}
        assert problem(await jobs_api.put("credentials/c", {"properties": climbing})) == (
            400, "CredentialReferenceNotAllowed",
        )  # fmt: skip


async def test_an_unknown_server_is_refused_with_the_nearest_names(jobs_api):
    body = members(
        {"type": "SqlServer", "serverName": "srw"}, {"type": "SqlServer", "serverName": "srv"}
    )

    answer = await jobs_api.put("targetGroups/g", body)

    assert problem(answer) == (400, "InvalidTargetServer")
    assert "srv" in answer.json()["error"]["message"]
    assert answer.json()["error"]["target"] == "properties.members[0].serverName"


async def test_a_server_goes_by_its_name_its_host_and_azure_s_name(jobs_api):
    names = ["srv", "SRV.database.windows.net", jobs_api.targets.host]
    body = members(*({"type": "SqlServer", "serverName": name} for name in names))

    made = await jobs_api.made("targetGroups/g", body)

    assert [each["serverName"] for each in made["properties"]["members"]] == names


async def test_rows_may_name_any_server_so_their_group_needs_the_right_on_all(jobs_api):
    await jobs_api.a_job()
    token = (
        await arm.put(jobs_api.call, f"{principals.AUTHORIZATION}/serviceTokens/t", {})
    ).json()["properties"]
    await principals.grant(jobs_api.call, SERVER, token["principalId"], CONTRIBUTOR.id)
    named = {"serverName": "srv", "databaseName": "d"}
    async with arm.calling(jobs_api.app, token["token"]) as limited:
        own = replace(jobs_api, call=limited)
        refused = await own.put(
            "targetGroups/q", members({"type": "SqlQuery", "query": "select 1", **named})
        )
        made = await own.put("targetGroups/d", members({"type": "SqlDatabase", **named}))

    assert problem(refused) == (403, "LinkedAuthorizationFailed")
    assert made.status_code == 201


async def test_what_belongs_to_others_is_not_told_from_what_is_not_there(jobs_api):
    """Attacks 23 and 24: linked resources that the caller has no right on, and servers he may not read."""
    await jobs_api.a_job()
    await jobs_api.an_account("other")
    token = (
        await arm.put(jobs_api.call, f"{principals.AUTHORIZATION}/serviceTokens/t", {})
    ).json()["properties"]
    await principals.grant(jobs_api.call, ACCOUNT, token["principalId"], CONTRIBUTOR.id)
    foreign = f"{SERVER}/jobAgents/other/credentials/c"
    async with arm.calling(jobs_api.app, token["token"]) as limited:
        stranger = replace(jobs_api, call=limited)
        for path, body in {
            "targetGroups/h": members(
                {"type": "TargetGroup", "targetGroup": f"{SERVER}/jobAgents/other/targetGroups/g"}
            ),
            "jobs/nightly/steps/first": a_step()
            | {"properties": {**a_step()["properties"], "credential": foreign}},
        }.items():
            assert problem(await stranger.put(path, body)) == (403, "LinkedAuthorizationFailed"), (
                path
            )
        for name in ("srv", "nothing"):
            member = members({"type": "SqlServer", "serverName": name})
            output = {"serverName": name, "databaseName": "d", "tableName": "t"}
            refused = await stranger.put("jobs/nightly/steps/out", a_step(output=output))
            assert problem(await stranger.put("targetGroups/g", member)) == (
                400, "InvalidTargetServer",
            )  # fmt: skip
            assert problem(refused) == (400, "InvalidTargetServer")
        assert (await stranger.put("jobs/mine", {})).status_code == 201
    mine = {"properties": {**a_step()["properties"], "credential": foreign}}
    assert problem(await jobs_api.put("jobs/nightly/steps/first", mine)) == (
        400, "MismatchingJobAccountNameWithUrl",
    )  # fmt: skip
    wrong = {"properties": {**a_step()["properties"], "credential": "/no/id"}}
    assert problem(await jobs_api.put("jobs/nightly/steps/first", wrong)) == (
        400,
        "InvalidResourceId",
    )


async def test_everything_wrong_with_a_step_is_told_at_once(jobs_api):
    await jobs_api.a_job()
    body = a_step(
        "vacuum; select 1", executionOptions={"timeoutSeconds": 0}, jitter=2,
        rollout={"waves": []}, retryOn=["4"],
    )  # fmt: skip

    answer = await jobs_api.put("jobs/nightly/steps/bad", body)

    assert answer.status_code == 400
    assert {each["target"] for each in answer.json()["error"]["details"]} == {
        "properties.action.value", "properties.executionOptions.timeoutSeconds",
        "properties.jitter", "properties.rollout.waves",
        "properties.retryOn[0]",
    }  # fmt: skip
    typo = await jobs_api.put("jobs/nightly/steps/bad", a_step(trnsaction="none"))
    assert "'transaction'" in typo.json()["error"]["message"]


@pytest.mark.parametrize("text", ["/*" * 30_000, "select " + "+" * 60_000 + "1"], ids=["/*", "+"])
async def test_a_script_that_costs_too_much_to_read_is_refused_and_not_stored(jobs_api, text):
    await jobs_api.a_job()

    step = await jobs_api.put("jobs/nightly/steps/costly", a_step(text))
    query = await jobs_api.post("queries", {"targetGroup": "all", "sql": text})

    for answer in (step, query):
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert "ScriptTooComplex" in {each["code"] for each in error.get("details", [error])}
    assert (await jobs_api.get("jobs/nightly/steps/costly")).status_code == 404


async def test_quotas_hold(jobs_api):
    await jobs_api.a_job()
    many = [
        {"type": "SqlDatabase", "serverName": "srv", "databaseName": f"d{n}"} for n in range(10_001)
    ]
    assert problem(await jobs_api.put("targetGroups/big", members(*many))) == (400, "QuotaExceeded")
    full = await jobs_api.put("targetGroups/big", members(*many[:-1]))
    assert (full.status_code, len(full.json()["properties"]["members"])) == (201, 10_000)
    for number in range(2, 101):
        await jobs_api.made(f"jobs/nightly/steps/s{number}", a_step())
    assert problem(await jobs_api.put("jobs/nightly/steps/s101", a_step())) == (
        400,
        "QuotaExceeded",
    )


async def test_lists_of_executions_are_newest_first_filtered_and_paged(jobs_api):
    await jobs_api.a_job()
    names = []
    for _ in range(5):
        names.insert(0, (await jobs_api.post("jobs/nightly/start")).json()["name"])
    await jobs_api.post(f"jobs/nightly/executions/{names[4]}/cancel")
    times = {
        e["name"]: e["properties"]["createTime"]
        for e in (await jobs_api.seen("executions"))["value"]
    }

    async def listed(path="jobs/nightly/executions", **query):
        return [each["name"] for each in (await jobs_api.seen(path, **query))["value"]]

    assert await listed() == await listed("executions") == names
    assert await listed(isActive="true") == names[:4]
    assert await listed(isActive="false") == names[4:]
    assert await listed(createTimeMin=times[names[1]]) == names[:2]
    assert await listed(createTimeMax=times[names[1]]) == names[2:]
    assert await listed(endTimeMin="2020-01-01T00:00:00.000Z") == names[4:]
    assert await listed(endTimeMax="2020-01-01T00:00:00Z") == []
    assert await listed(__skip="1", __top="2") == names[1:3]
    assert await listed(__skip="9") == []
    assert "nextLink" not in await jobs_api.seen("executions", __top="2")
    for wrong in (
        {"isActive": "maybe"},
        {"createTimeMin": "yesterday"},
        {"__top": "0"},
        {"__skip": "-1"},
        {"__skip": str(2**63 - 1)},
    ):
        assert problem(await jobs_api.get("executions", **wrong)) == (400, "InvalidParameterValue")


async def test_every_list_goes_on_behind_its_next_link(jobs_api):
    for number in range(5):
        await jobs_api.made(f"jobs/j{number}", {})

    seen, page = [], await jobs_api.seen("jobs", __top="2")
    while True:
        seen += [each["name"] for each in page["value"]]
        if "nextLink" not in page:
            break
        page = (await jobs_api.call.get(page["nextLink"])).json()

    assert seen == [f"j{number}" for number in range(5)]
    forged = await jobs_api.get("credentials", __skiptoken="x" * 40)
    assert problem(forged) == (400, "InvalidSkipToken")


async def test_an_execution_under_a_chosen_id_starts_once(jobs_api):
    await jobs_api.a_job()
    await jobs_api.a_job("weekly")
    id = str(uuid4())

    answers = [await jobs_api.put(f"jobs/nightly/executions/{id}") for _ in range(2)]
    elsewhere = await jobs_api.put(f"jobs/weekly/executions/{id}")
    nonsense = await jobs_api.put("jobs/nightly/executions/one")

    assert [each.status_code for each in answers] == [201, 200]
    assert not {"location", "azure-asyncoperation"} & answers[0].headers.keys()
    assert answers[0].json()["properties"]["jobExecutionId"] == id
    assert elsewhere.status_code == 409
    assert problem(nonsense) == (400, "InvalidResourceName")
    assert problem(await jobs_api.get("jobs/nightly/executions/one")) == (404, "ResourceNotFound")


async def test_a_cancel_answers_exactly_200_and_nothing(jobs_api):
    await jobs_api.a_job()
    run = (await jobs_api.post("jobs/nightly/start")).json()["name"]

    answer = await jobs_api.post(f"jobs/nightly/executions/{run}/cancel")
    over = await jobs_api.post(f"jobs/nightly/executions/{run}/cancel")

    assert (answer.status_code, answer.content) == (200, b"")
    assert problem(over) == (400, "ElasticJobsOperationFailed")
    shown = (await jobs_api.seen(f"jobs/nightly/executions/{run}"))["properties"]
    assert (shown["lifecycle"], shown["provisioningState"]) == ("Canceled", "Canceled")


async def test_what_is_in_use_stays(jobs_api):
    await jobs_api.a_job()

    answers = [await jobs_api.delete(path) for path in ("credentials/login", "targetGroups/fleet")]

    assert {problem(each) for each in answers} == {(400, "ElasticJobsOperationFailed")}
    assert "nightly" in answers[0].json()["error"]["message"]


async def test_a_deleted_job_takes_its_history_out_of_sight(jobs_api):
    await jobs_api.a_job()
    run = (await jobs_api.post("jobs/nightly/start")).json()["name"]
    await jobs_api.post(f"jobs/nightly/executions/{run}/cancel")

    assert (await jobs_api.delete("jobs/nightly")).status_code == 200

    assert (await jobs_api.seen("executions"))["value"] == []
    hidden = (await jobs_api.seen("executions", includeDeleted="true"))["value"]
    assert [each["name"] for each in hidden] == [run]


async def test_a_lock_stops_changes_and_starts_but_no_cancel(jobs_api):
    await jobs_api.a_job()
    run = (await jobs_api.post("jobs/nightly/start")).json()["name"]
    lock = f"{ACCOUNT}{principals.AUTHORIZATION}/locks/still"
    await arm.put(jobs_api.call, lock, {"properties": {"level": "ReadOnly"}})

    refused = [
        await jobs_api.put("jobs/other", {}), await jobs_api.delete("jobs/nightly"),
        await jobs_api.post("jobs/nightly/start"),
    ]  # fmt: skip
    canceled = await jobs_api.post(f"jobs/nightly/executions/{run}/cancel")

    assert {problem(each) for each in refused} == {(409, "ScopeLocked")}
    assert canceled.status_code == 200


async def test_an_account_that_is_not_there_or_not_made_yet_says_so(jobs_api):
    nowhere = f"{SERVER}/jobAgents/none/jobs/j"
    assert problem(await jobs_api.get(nowhere)) == (404, "JobAgentNotFound")
    assert problem(await jobs_api.put(nowhere, {})) == (404, "JobAgentNotFound")
    await arm.put(jobs_api.call, f"{SERVER}/databases/control_young", {"location": "local"})
    await jobs_api._until(f"{SERVER}/databases/control_young", "provisioning_state = 'Succeeded'")
    body = {"location": "local", "properties": {"databaseId": f"{SERVER}/databases/control_young"}}
    await arm.put(jobs_api.call, f"{SERVER}/jobAgents/young", body)

    young = f"{SERVER}/jobAgents/young/jobs"

    assert problem(await jobs_api.get(young)) == (409, "JobAgentNotReady")
    assert problem(await jobs_api.put(f"{young}/j", {})) == (409, "JobAgentNotReady")


async def test_a_control_database_that_is_gone_is_a_conflict_and_no_404(jobs_api):
    await jobs_api.made("jobs/nightly", {})
    await jobs_api.control("drop schema jobs, jobs_internal cascade")

    answers = [await jobs_api.get("jobs/nightly"), await jobs_api.put("jobs/nightly", {})]

    assert {problem(each) for each in answers} == {(409, "ControlSchemaMissing")}


async def test_without_a_node_agent_the_same_request_can_be_sent_again(jobs_api):
    await jobs_api.made("jobs/nightly", {})
    await jobs_api.metadata("delete from node_agents")
    jobs_api.plane.agent._known.clear()

    answer = await jobs_api.put("jobs/nightly", {}, **{"Idempotency-Key": "k"})

    assert problem(answer) == (503, "NodeAgentUnavailable")
    assert int(answer.headers["retry-after"]) >= 1


async def test_the_next_runs_follow_from_the_schedule(jobs_api):
    schedule = {"cron": "0 0 1 1 *", "timeZone": "Europe/Berlin", "enabled": True}
    await jobs_api.made("jobs/yearly", {"properties": {"schedule": schedule}})
    await jobs_api.made("jobs/never", {})

    page = await jobs_api.seen("jobs/yearly/nextRuns", __top="2")

    times = [each["time"] for each in page["value"]]
    assert [time[4:] for time in times] == ["-12-31T23:00:00Z"] * 2
    following = (await jobs_api.call.get(page["nextLink"])).json()["value"]
    assert following[0]["time"] > times[1]
    assert (await jobs_api.seen("jobs/never/nextRuns"))["value"] == []
    shown = (await jobs_api.seen("jobs/yearly"))["properties"]["schedule"]
    assert (shown["type"], shown["cron"], shown["timeZone"]) == (
        "Recurring", "0 0 1 1 *", "Europe/Berlin",
    )  # fmt: skip


async def test_resolving_waits_for_the_engine_s_answer(jobs_api, monkeypatch):
    await jobs_api.a_job()
    answer = {"targets": [{"serverName": "srv", "databaseName": "d"}]}
    query = (
        "update jobs_internal.request set answer = $1::text::jsonb, answered_at = now() returning 1"
    )

    asking = asyncio.create_task(jobs_api.post("targetGroups/fleet/resolve"))
    while not await jobs_api.control(
        query, '{"targets": [{"serverName": "srv", "databaseName": "d"}]}'
    ):
        await asyncio.sleep(0.05)

    assert (await asking).json() == answer
    monkeypatch.setattr(engine_requests, "PATIENCE", 0.3)
    assert problem(await jobs_api.post("targetGroups/fleet/resolve")) == (503, "EngineNotAnswering")
    assert problem(await jobs_api.post("targetGroups/none/resolve")) == (404, "ResourceNotFound")


async def test_a_private_endpoint_waits_for_a_decision(jobs_api):
    await jobs_api.made(
        "privateEndpoints/way", {"properties": {"targetServerAzureResourceId": SERVER}}
    )

    states = [
        (await jobs_api.post(f"privateEndpoints/way/{verb}")).json()["properties"]["status"]
        for verb in ("approve", "reject")
    ]

    assert states == ["Approved", "Rejected"]
    nowhere = {"properties": {"targetServerAzureResourceId": f"{SERVER}x"}}
    assert problem(await jobs_api.put("privateEndpoints/other", nowhere)) == (
        400,
        "InvalidTargetServer",
    )


async def test_a_reader_reads_and_no_more(jobs_api):
    await jobs_api.a_job()
    token = (
        await arm.put(jobs_api.call, f"{principals.AUTHORIZATION}/serviceTokens/t", {})
    ).json()["properties"]
    await principals.grant(jobs_api.call, ACCOUNT, token["principalId"], READER.id)

    async with arm.calling(jobs_api.app, token["token"]) as reading:
        reader = replace(jobs_api, call=reading)
        assert (await reader.get("jobs/nightly")).status_code == 200
        for answer in (await reader.put("jobs/x", {}), await reader.post("jobs/nightly/start")):
            assert problem(answer) == (403, "AuthorizationFailed")


async def test_a_login_that_was_remembered_for_too_long_is_renewed(jobs_api):
    await jobs_api.made("jobs/nightly", {})
    tenant, key = jobs_api.plane.settings.tenant_id, ACCOUNT.lower()
    known = jobs_api.plane.accounts.get(tenant, key)

    def remember_another_account():
        login = msgspec.structs.replace(known.login, user="muster_of_another_time")
        jobs_api.plane.accounts.keep(tenant, key, replace(known, uid=uuid4(), login=login))

    remember_another_account()
    assert (await jobs_api.get("jobs/nightly")).status_code == 200
    remember_another_account()
    assert (await jobs_api.put("jobs/nightly", {})).status_code == 200


async def test_a_limit_of_requests_holds_up_no_cancel(jobs_api):
    await jobs_api.a_job()
    runs = [(await jobs_api.post("jobs/nightly/start")).json()["name"] for _ in range(3)]
    limited = replace(jobs_api.plane.settings, throttle="on", throttle_writes=1)
    app = arm.build(replace(jobs_api.plane, settings=limited))

    async with arm.calling(app) as call:
        hurried = replace(jobs_api, call=call)
        canceled = [await hurried.post(f"jobs/nightly/executions/{run}/cancel") for run in runs]
        starts = [(await hurried.post("jobs/nightly/start")).status_code for _ in range(3)]

    assert {each.status_code for each in canceled} == {200}
    assert starts[0] == 200
    assert 429 in starts
