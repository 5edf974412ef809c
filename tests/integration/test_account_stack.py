"""Job accounts on the whole embedded stack: real clusters, launcher, node agent, engines and hosts."""

import os
import signal
import subprocess
import sys

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.sql import SqlManagementClient
from azure.mgmt.sql.models import JobStepOutput
from prometheus_client.parser import text_string_to_metric_families

from tests.support.stack import GROUP, SERVER, a_job, a_server, an_account, muster_up, until

pytestmark = pytest.mark.newest


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    settings = {"MUSTER_ACCOUNT_CHECK": "500ms", "MUSTER_WORKLOAD_HEARTBEAT": "500ms"}
    with muster_up(tmp_path_factory.mktemp("stack"), **settings) as stack:
        a_server(stack)
        yield stack
        for account in stack.get(f"{SERVER}/jobAgents")["value"]:
            stack.follow(stack.client.delete(account["id"]))
        until(lambda: not stack.processes("engine") and not stack.processes("host"))


def sdk(stack):
    class Credential:
        def get_token(self, *scopes, **kwargs):
            return AccessToken(stack.token, 2**40)

    class Bearer(SansIOHTTPPolicy):
        def on_request(self, request):
            request.http_request.headers["Authorization"] = f"Bearer {stack.token}"

    return SqlManagementClient(
        Credential(), "s1", stack.url, authentication_policy=Bearer(), polling_interval=0.1
    )


def test_the_sdk_creates_updates_lists_and_deletes_an_account(stack):
    stack.put(f"{SERVER}/databases/jobs_sdk", {"location": "local"})
    body = {"location": "local", "properties": {"databaseId": f"{SERVER}/databases/jobs_sdk"}}
    with sdk(stack) as client:
        agents = client.job_agents
        made = agents.begin_create_or_update("g1", "fleet", "sdk", body).result()
        assert (made.state, made.sku.name, made.sku.capacity) == ("Ready", "JA100", 100)
        assert made.database_id == body["properties"]["databaseId"]
        before = agents.get("g1", "fleet", "sdk")["properties"]["instance"]

        updated = agents.begin_update(
            "g1", "fleet", "sdk", {"sku": {"name": "JA400"}, "tags": {"a": "b"}}
        ).result()
        assert (updated.state, updated.sku.capacity, updated.tags) == ("Ready", 400, {"a": "b"})
        after = agents.get("g1", "fleet", "sdk")["properties"]["instance"]
        assert after["epoch"] > before["epoch"]
        assert "sdk" in [agent.name for agent in agents.list_by_server("g1", "fleet")]

        agents.begin_delete("g1", "fleet", "sdk").result()
        with pytest.raises(ResourceNotFoundError):
            agents.get("g1", "fleet", "sdk")
        agents.begin_delete("g1", "fleet", "sdk").result()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "InvalidResourceRequestBody"),
        ({"properties": {"databaseId": "jobs"}}, 400, "InvalidDatabaseResourceId"),
        ({"properties": {"databaseId": SERVER}}, 400, "InvalidDatabaseResourceId"),
        (
            {"properties": {"databaseId": SERVER.replace("s1", "s2") + "/databases/x"}},
            400,
            "MismatchingSubscriptionWithUrl",
        ),
        (
            {"properties": {"databaseId": SERVER.replace("g1", "g2") + "/databases/x"}},
            400,
            "MismatchingResourceGroupNameWithUrl",
        ),
        (
            {"properties": {"databaseId": SERVER + "2/databases/x"}},
            400,
            "MismatchingServerNameWithUrl",
        ),
        (
            {"properties": {"databaseId": SERVER + "/databases/postgres"}},
            400,
            "CannotUseReservedDatabaseName",
        ),
        (
            {"properties": {"databaseId": SERVER + "/databases/nowhere"}},
            400,
            "DatabaseDoesNotExist",
        ),
        ({"sku": {"capacity": 100}}, 400, "MissingSkuName"),
        ({"sku": {"name": "JA100", "capacity": 5}}, 400, "SkuMismatchingNameCapacity"),
        ({"sku": {"name": "GOLD"}}, 400, "ElasticJobAgentEditionUnsupported"),
        ({"identity": {"type": "SystemAssigned"}}, 400, "InvalidIdentityType"),
        ({"identity": {"userAssignedIdentities": {"/a/b": {}}}}, 400, "MissingIdentityType"),
        ({"identity": {"type": "UserAssigned"}}, 400, "MissingUserAssignedIdentities"),
        (
            {
                "identity": {
                    "type": "UserAssigned",
                    "userAssignedIdentities": {"/a/b": {}, "/a/c": {}},
                }
            },
            400,
            "MultipleIdentitiesOnJobAgent",
        ),
        ({"identity": {"type": "None", "tenantId": "x"}}, 400, "InvalidIdentityTenantId"),
    ],
)
def test_each_mistake_has_its_documented_code(stack, body, status, code):
    answer = stack.client.put(f"{SERVER}/jobAgents/wrong", json={"location": "local"} | body)

    assert answer.status_code == status
    error = answer.json()["error"]
    assert code in {error["code"], *(detail["code"] for detail in error.get("details") or [])}


def test_a_control_database_is_linked_once_and_kept_for_life(stack):
    path = an_account(stack, "linked")
    other = {"location": "local", "properties": {"databaseId": f"{SERVER}/databases/jobs_linked"}}

    second = stack.client.put(f"{SERVER}/jobAgents/second", json=other)
    assert (second.status_code, second.json()["error"]["code"]) == (
        400,
        "JobAgentDatabaseAlreadyLinked",
    )
    moved = stack.client.put(
        path, json={"location": "local", "properties": {"databaseId": f"{SERVER}/databases/other"}}
    )
    assert (moved.status_code, moved.json()["error"]["code"]) == (404, "PropertyChangeUnsupported")
    for blocked in (f"{SERVER}/databases/jobs_linked", SERVER, GROUP):
        answer = stack.client.delete(blocked)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "ControlDatabaseInUse")


def test_a_killed_engine_is_replaced_and_its_host_goes_on(stack):
    path = an_account(stack, "killed")
    before = stack.get(path)["properties"]["instance"]
    engines, hosts = stack.processes("engine"), stack.processes("host")

    replaced(stack, "killed")

    assert stack.get(path)["properties"]["instance"]["epoch"] > before["epoch"]
    assert stack.processes("host") >= hosts
    assert engines - stack.processes("engine")


def replaced(stack, account):
    """Its engine is killed, and another one is in charge."""
    path = f"{SERVER}/jobAgents/{account}"
    before = stack.get(path)["properties"]["instance"]["generation"]
    [engine] = stack.psql(f"jobs_{account}", "select workload_id from jobs_internal.instance")
    [pid] = stack.processes("engine", engine["workload_id"])
    os.kill(pid, signal.SIGKILL)

    def back():
        shown = stack.get(path)["properties"]
        return shown["state"] == "Ready" and shown["instance"]["generation"] > before

    until(back, seconds=20)


def test_functions_that_an_upgrade_of_muster_changes_are_there_before_the_next_engine(stack):
    an_account(stack, "upgraded")
    body = "select prosrc from pg_proc where oid = 'jobs_internal.summary_sentence'::regproc"
    [newest] = stack.psql("jobs_upgraded", body)
    [head] = stack.psql(
        "jobs_upgraded",
        "select pg_get_functiondef(p.oid) as text, pg_get_userbyid(p.proowner) as owner from pg_proc p"
        " where p.oid = 'jobs_internal.summary_sentence'::regproc",
    )
    older = head["text"].replace(newest["prosrc"], f"{newest['prosrc']} -- of an older version")
    stack.psql(
        "jobs_upgraded",
        f"""do $do$ begin
                set local role "{head["owner"]}";
                execute $older${older}$older$;
                update jobs_internal.migration set digest = 'older'
                 where name = 'engine.sql.functions/summary_sentence.sql';
            end $do$""",
    )
    assert stack.psql("jobs_upgraded", body) != [newest]

    replaced(stack, "upgraded")

    assert stack.psql("jobs_upgraded", body) == [newest]


def test_a_killed_host_is_replaced(stack):
    path = an_account(stack, "hostless")
    before = stack.get(path)["properties"]["instance"]
    hosts = stack.processes("host")

    for pid in hosts:
        os.kill(pid, signal.SIGKILL)

    def back():
        shown = stack.get(path)["properties"]
        return shown["state"] == "Ready" and shown["instance"]["generation"] > before["generation"]

    until(back, seconds=30)
    until(lambda: len(stack.processes("host")) >= len(hosts))
    assert not stack.processes("host") & hosts


def test_pause_and_resume_reach_the_control_database(stack):
    path = an_account(stack, "paused")

    assert stack.client.post(f"{path}/pause").json() == {"paused": True}
    assert stack.get(path)["properties"]["paused"] is True
    assert stack.client.post(f"{path}/resume").json() == {"paused": False}
    assert stack.get(path)["properties"]["paused"] is False


def test_a_second_write_waits_for_the_first(stack):
    path = an_account(stack, "busy")
    first = stack.client.patch(path, json={"sku": {"name": "JA200"}})
    assert first.status_code == 202

    second = stack.client.patch(path, json={"sku": {"name": "JA400"}})

    assert second.status_code == 409
    assert second.json()["error"]["code"] == "ElasticJobAgentOperationUnavailable"
    assert "retry-after" not in second.headers
    assert stack.follow(first)["status"] == "Succeeded"


def test_the_doctor_has_nothing_to_say_about_a_healthy_account(stack):
    path = an_account(stack, "healthy")

    told = stack.client.post(f"{path}/doctor").json()

    assert (told["healthy"], told["step"], told["advice"]) == (True, "ready", [])
    assert told["engine"]["state"] == "running"
    command = [sys.executable, "-P", "-m", "muster", "account", "doctor", path, "--url", stack.url]
    printed = subprocess.run(
        command,
        env=os.environ | {"MUSTER_TOKEN": stack.token},
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed.returncode == 0, printed.stderr
    assert "healthy" in printed.stdout


def test_errors_of_a_failed_operation_reach_the_sdk(stack):
    with sdk(stack) as client, pytest.raises(HttpResponseError) as refused:
        client.job_agents.begin_create_or_update(
            "g1", "fleet", "nothing", {"location": "local", "properties": {"databaseId": "x"}}
        )
    assert refused.value.error.code == "InvalidDatabaseResourceId"


def test_a_group_is_resolved_by_the_engine(stack):
    account = an_account(stack, "resolves")
    for name in ("tenant_1", "tenant_2"):
        stack.put(f"{SERVER}/databases/{name}", {"location": "local"})
    stack.put(
        f"{account}/credentials/admin",
        {"properties": {"username": "fleet_admin", "password": "correct horse"}},
    )
    closed = {"host": "127.0.0.1", "port": 1025, "sslMode": "disable"}
    registered = {"properties": {"endpoint": closed}, "location": "local"}
    refused = stack.client.put(f"{GROUP}/providers/Microsoft.Sql/servers/loop", json=registered)
    assert refused.json()["error"]["code"] == "InvalidTargetServer"
    member = {"type": "SqlServer", "serverName": "fleet.database.windows.net"}
    member["refreshCredential"] = f"{account}/credentials/admin"
    excluded = {"type": "SqlDatabase", "serverName": "fleet", "databaseName": "t*_2"}
    gone = {"type": "SqlDatabase", "serverName": "fleet", "databaseName": "gone"}
    gone["credential"] = member["refreshCredential"]
    nobody = {"type": "SqlServer", "serverName": "FLEET"}
    stack.put(
        f"{account}/targetGroups/g",
        {"properties": {"members": [member, gone, excluded | {"membershipType": "Exclude"}]}},
    )
    stack.put(f"{account}/targetGroups/nobody", {"properties": {"members": [nobody]}})

    found = stack.client.post(f"{account}/targetGroups/g/resolve").raise_for_status().json()
    none = stack.client.post(f"{account}/targetGroups/nobody/resolve").raise_for_status().json()

    names = [target["databaseName"] for target in found["targets"]]
    assert "tenant_1" in names
    assert "tenant_2" not in names
    assert found["count"] == len(names)
    left_out = {each["databaseName"]: each["reason"] for each in found["leftOut"]}
    assert (left_out["postgres"], left_out["tenant_2"]) == ("ServersOwn", "Excluded")
    assert [each["databaseName"] for each in found["missing"]] == ["gone"]
    assert (none["count"], none["unreachable"][0]["code"]) == (0, "CredentialMissing")
    named = gone | {"databaseName": "tenant_1"}
    stack.put(f"{account}/targetGroups/named", {"properties": {"members": [gone, named]}})
    doctor = stack.client.post(f"{account}/targetGroups/named/doctor").raise_for_status().json()
    assert {each["databaseName"]: each.get("code") for each in doctor["value"]} == {
        "gone": "TargetDatabaseNotFound",
        "tenant_1": None,
    }


def test_a_plan_is_stored_and_started_and_targets_are_named_without_a_group(stack):
    # given a job on two databases
    account = an_account(stack, "plans")
    for name in ("plan_1", "plan_2"):
        stack.psql("postgres", f"create database {name}")
    a_job(stack, account, "effect", "create table effect ()", "plan_1", "plan_2")
    job = f"{account}/jobs/effect"
    # when it is planned and the plan is started
    planned = stack.client.post(f"{job}/plan").raise_for_status().json()
    plan = planned["properties"]
    body = {"planId": planned["name"]}
    started = stack.client.post(f"{job}/start", json=body).raise_for_status().json()
    # then the plan names the run, and the run the plan
    (step,) = plan["steps"]
    assert [each["databaseName"] for each in step["targets"]] == ["plan_1", "plan_2"]
    assert (started["properties"]["origin"], started["properties"]["planOf"]) == (
        "plan",
        planned["name"],
    )
    shown = stack.client.get(f"{job}/plans/{planned['name']}").json()["properties"]
    assert shown == plan | {"jobExecutionId": started["name"]}
    newest = stack.client.post(f"{job}/plan").raise_for_status().json()["name"]
    listed = stack.client.get(f"{job}/plans").raise_for_status().json()["value"]
    assert [each["name"] for each in listed] == [newest, planned["name"]]
    assert listed[1]["properties"] == shown
    refused = stack.client.post(f"{job}/start", json={"planId": planned["name"]})
    assert (refused.status_code, refused.json()["error"]["target"]) == (400, "planId")
    assert until(lambda: ended(stack, started["id"])) == "Succeeded"
    # and a query and a start run on named targets
    target = {"serverName": "fleet", "databaseName": "plan_2"}
    query = {"targets": [target], "sql": "drop table effect", "readOnly": False}
    query["credential"] = f"{account}/credentials/admin"
    asked = stack.client.post(f"{account}/queries", json=query).raise_for_status().json()
    assert until(lambda: ended(stack, asked["id"])) == "Succeeded"
    named = {"targets": [target], "limit": 1, "overrides": {"retryAttempts": 0}}
    again = stack.client.post(f"{job}/start", json=named).raise_for_status().json()
    assert until(lambda: ended(stack, again["id"])) == "Succeeded"
    assert (again["properties"]["limit"], again["properties"]["overrides"]) == (
        1,
        {"retryAttempts": 0},
    )


@pytest.mark.deep
def test_a_target_of_a_halted_run_is_retried(stack):
    # given a run that its first target has halted
    account = an_account(stack, "retries")
    for name in ("retry_1", "retry_2"):
        stack.psql("postgres", f"create database {name}")
    a_job(stack, account, "fill", "insert into late values (1)", "retry_1", "retry_2")
    body = {"overrides": {"rollout": {"waves": [1, "100%"]}, "retryAttempts": 0}}
    run = stack.client.post(f"{account}/jobs/fill/start", json=body).raise_for_status().json()["id"]
    halted = until(lambda: stack.client.get(f"{run}/summary").json().get("waitReason") == "Halted")
    assert halted
    only = {"lifecycle": "Failed"}
    (failed,) = stack.client.get(f"{run}/targets", params=only).json()["value"]
    # when the cause is gone, the target is retried and the run resumed
    for name in ("retry_1", "retry_2"):
        stack.psql(name, "create table late (n int)")
    again = stack.client.post(f"{failed['id']}/retry").raise_for_status().json()
    assert again["properties"]["lifecycle"] == "Created"
    assert stack.client.post(f"{failed['id']}/retry").status_code == 409
    stack.client.post(f"{run}/resume").raise_for_status()
    # then it succeeds everywhere
    assert until(lambda: ended(stack, run)) == "Succeeded"


def ended(stack, execution):
    properties = stack.client.get(execution).raise_for_status().json()["properties"]
    return properties["lifecycle"] if properties.get("endTime") else None


def test_a_new_server_is_a_target_at_once(stack):
    account = an_account(stack, "follows")
    server = f"{GROUP}/providers/Microsoft.Sql/servers/later"
    login = {"administratorLogin": "later_admin", "administratorLoginPassword": "correct horse"}
    stack.put(server, {"location": "local", "properties": login})
    member = {"type": "SqlDatabase", "serverName": "later", "databaseName": "any"}

    made = until(
        lambda: (
            (
                answer := stack.client.put(
                    f"{account}/targetGroups/g", json={"properties": {"members": [member]}}
                )
            ).is_success
            and answer
        )
    )

    assert made.status_code == 201
    found = stack.client.post(f"{account}/targetGroups/g/resolve").raise_for_status().json()
    assert [target["serverName"] for target in found["targets"]] == ["later"]


def test_a_password_is_sealed_on_the_command_line_and_opened_by_the_engine(stack):
    account = an_account(stack, "seals")
    stack.put(f"{SERVER}/databases/sealed_1", {"location": "local"})
    command = [sys.executable, "-P", "-m", "muster", "credential", "seal", "Typed"]
    environ = os.environ | {"MUSTER_URL": stack.url, "MUSTER_TOKEN": stack.token}
    sealed = subprocess.run(
        [*command, "--account", "seals"],
        env=environ, input="correct horse\n", capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert sealed.startswith("sealed:")
    stack.psql("jobs_seals", "select jobs.sp_add_credential('typed', 'fleet_admin', $1)", sealed)
    member = {"type": "SqlServer", "serverName": "fleet"}
    member["refreshCredential"] = f"{account}/credentials/typed"
    stack.put(f"{account}/targetGroups/g", {"properties": {"members": [member]}})

    found = stack.client.post(f"{account}/targetGroups/g/resolve").raise_for_status().json()

    assert "sealed_1" in [target["databaseName"] for target in found["targets"]]
    tried = stack.client.post(f"{account}/credentials/typed/test").raise_for_status().json()
    assert [(each["serverName"], each["ok"]) for each in tried["value"]] == [("fleet", True)]


def test_the_sdk_runs_a_job_over_twenty_databases_and_cancels_a_slow_one(stack):
    account = an_account(stack, "runs")
    names = [f"run_{number:02}" for number in range(20)]
    for name in names:
        stack.psql("postgres", f"create database {name}")
    a_job(stack, account, "quick", "create table t as select 1", *names)
    a_job(stack, account, "slow", "select pg_sleep(120)", *names)
    place = ("g1", "fleet", "runs")

    with sdk(stack) as client:
        run = client.job_executions.begin_create(*place, "quick").result()
        id = str(run.job_execution_id)
        ended = until(lambda: over(client.job_executions.get(*place, "quick", id)))
        steps = list(client.job_step_executions.list_by_job_execution(*place, "quick", id))
        targets = list(client.job_target_executions.list_by_job_execution(*place, "quick", id))

        assert ended.lifecycle == "Succeeded"
        assert [(one.step_name, one.lifecycle) for one in steps] == [("one", "Succeeded")]
        assert {one.target.database_name for one in targets} == set(names)
        assert {(one.lifecycle, one.current_attempts) for one in targets} == {("Succeeded", 1)}
        assert stack.psql("run_13", "select count(*) from t")[0][0] == 1
        [(given, budget)] = stack.psql("jobs_runs", BUDGET)
        assert given is None and 2 <= budget <= 20, "what nobody said is found at first contact"

        slow = str(client.job_executions.begin_create(*place, "slow").result().job_execution_id)
        until(lambda: busy(client, place, slow))
        until(
            lambda: (
                counted(stack, "muster_target_attempts_total", job="quick", state="Succeeded") == 20
            )
        )
        until(lambda: counted(stack, "muster_targets_running", job="slow"))
        assert counted(stack, "muster_runs_total", job="quick", state="Succeeded") == 1
        until(lambda: counted(stack, "muster_server_sessions", server="fleet"))
        client.job_executions.cancel(*place, "slow", slow)
        stopped = until(lambda: over(client.job_executions.get(*place, "slow", slow)))
        assert stopped.lifecycle == "Canceled"


def test_the_sdk_runs_a_job_with_an_output_target(stack):
    account = an_account(stack, "writes")
    names = [f"write_{number}" for number in range(3)]
    for name in names:
        stack.psql("postgres", f"create database {name}")
    a_job(stack, account, "report", "select 1", *names)
    script = "select current_database()::text as name, now() as at"
    place, step = ("g1", "fleet", "writes"), ("report", "one")

    with sdk(stack) as client:
        given = client.job_steps.get(*place, *step)
        given.action.value = script
        given.output = JobStepOutput(
            server_name="fleet", database_name=names[0], table_name="Report", credential=given.credential
        )  # fmt: skip
        made = client.job_steps.create_or_update(*place, *step, given)
        run = client.job_executions.begin_create(*place, "report").result()
        id = str(run.job_execution_id)
        ended = until(lambda: over(client.job_executions.get(*place, "report", id)))

        assert (made.output.schema_name, made.output.type) == ("dbo", "SqlDatabase")
        assert ended.lifecycle == "Succeeded"
    query = (
        'select name, internal_execution_id is not null, at is not null from "Report" order by 1'
    )
    assert [tuple(row) for row in stack.psql(names[0], query)] == [
        (name, True, True) for name in names
    ]


def counted(stack, name, **labels):
    """The sum of the series with these labels, as Prometheus scrapes them."""
    text = stack.client.get("/metrics").text
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_a_sleeping_step_lives_through_two_cores_and_an_update(stack):
    account = an_account(stack, "lives")
    stack.psql("postgres", "create database sleeps")
    stack.psql("sleeps", "create table gate ()")
    stack.psql("sleeps", "create table effect (attempt int)")
    a_job(stack, account, "sleeps", SLEEPS, "sleeps")
    stack.psql("jobs_lives", "select jobs.sp_start_job('sleeps')")
    asleep = until(lambda: stack.psql("sleeps", ASLEEP))

    replaced(stack, "lives")
    updated = stack.client.patch(account, json={"sku": {"name": "JA400"}})
    assert stack.follow(updated)["status"] == "Succeeded"
    replaced(stack, "lives")
    still = stack.psql("sleeps", ASLEEP)
    slots = [
        row["slots"] for row in stack.psql("jobs_lives", "select slots from jobs_internal.host")
    ]
    stack.psql("sleeps", "insert into gate default values")
    ended = until(lambda: stack.psql("jobs_lives", ENDED))

    assert (still, slots) == (asleep, [400])
    assert [tuple(row) for row in ended] == [("Succeeded", 1)]
    assert [row["attempt"] for row in stack.psql("sleeps", "select * from effect")] == [1]


SLEEPS = """
insert into effect values ($(attempt));
do $$ begin
    while not exists (select from gate) loop perform pg_sleep(0.2); end loop;
end $$
"""
ASLEEP = """
select pid, backend_start from pg_stat_activity where datname = 'sleeps' and query ~ 'from gate' and pid <> pg_backend_pid()
"""
ENDED = """
select lifecycle, current_attempts from jobs.job_executions where target_type is not null and end_time is not null
"""


BUDGET = """
select d.max_connections, c.budget
  from jobs_internal.server_directory d join jobs_internal.server_contact c using (server_id) where d.name = 'fleet'
"""


def over(execution):
    return execution if execution.end_time is not None else None


def busy(client, place, id):
    targets = client.job_target_executions.list_by_job_execution(*place, "slow", id)
    return any(one.lifecycle == "InProgress" for one in targets)
