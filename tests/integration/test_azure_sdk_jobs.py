"""The real Azure SDK, unchanged, through every operation below a job account: sync, aio, old versions.

No launcher runs, so no engine does: what is started stays as it is until it is cancelled. Steps and
targets of an execution are put into the control database by hand, as an engine would.
"""

import asyncio
import inspect
import json
from uuid import uuid4

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.sql import SqlManagementClient
from azure.mgmt.sql.aio import SqlManagementClient as AsyncSqlManagementClient

from tests.support.accounts import SERVER, account, start_control_plane
from tests.support.running_api import TOKEN

pytestmark = pytest.mark.newest

PLACE = ("g1", "srv", "sdk")
HERE = account("sdk")
GROUPS = (
    "job_credentials", "job_target_groups", "jobs", "job_versions", "job_steps", "job_executions",
    "job_step_executions", "job_target_executions", "job_private_endpoints",
)  # fmt: skip
VERSIONS = [None, "2020-11-01-preview", "2023-08-01-preview"]
STEP_RUN = """
insert into jobs_internal.step_execution (run_day, job_execution_id, step_id, step_name, content_hash, lifecycle,
                                          snapshot_id)
select run_day, job_execution_id, 1, 'first', '', 'InProgress', $2 from jobs_internal.job_execution
 where job_execution_id = $1
"""
SNAPSHOT = """
with made as (
    insert into jobs_internal.snapshot (snapshot_id, target_group_id, group_hash, directory_revision, targets, targets_hash)
    values ($1, gen_random_uuid(), '', 1, 1, '') returning snapshot_id
)
insert into jobs_internal.snapshot_target (snapshot_id, ordinal, target_id, target_type, server_id, server_name, database_name, rule)
select snapshot_id, 1, gen_random_uuid(), 'SqlDatabase', 'x', 'srv', 'd1', gen_random_uuid() from made
"""
TARGET_RUN = """
insert into jobs_internal.target_execution (run_day, job_execution_id, step_id, ordinal, snapshot_id)
select run_day, job_execution_id, 1, 1, $2 from jobs_internal.job_execution where job_execution_id = $1
"""


class Credential:
    def get_token(self, *scopes, **kwargs):
        return AccessToken(TOKEN, 2**40)


class PlainBearer(SansIOHTTPPolicy):
    def on_request(self, request):
        request.http_request.headers["Authorization"] = f"Bearer {TOKEN}"


@pytest.fixture
def control_plane(settings, targets, tmp_path):
    with start_control_plane(
        settings, targets, tmp_path / "launcher", own_launcher=False
    ) as running:
        running.database("sdk")
        running.begin("sdk")
        running.until(lambda: running.http.get(f"{HERE}/jobs").status_code == 200)
        yield running


def options(control_plane, version):
    chosen = {} if version is None else {"api_version": version}
    return {
        "base_url": control_plane.plane.url, "authentication_policy": PlainBearer(), "polling_interval": 0.1,
    } | chosen  # fmt: skip


def engine_begins(control_plane, run):
    """The rows that an engine makes for a step on a target."""
    snapshot = uuid4()
    control_plane.control("sdk", "select jobs_internal.ensure_partitions(current_date)")
    control_plane.control("sdk", SNAPSHOT, snapshot)
    control_plane.control("sdk", STEP_RUN, run, snapshot)
    control_plane.control("sdk", TARGET_RUN, run, snapshot)


class Recorder:
    """Passes every call on, and remembers which operations were used."""

    def __init__(self, client):
        self.client, self.used = client, set()

    def __getattr__(self, group):
        return _Group(self, group)

    def unused(self):
        every = {
            (group, name)
            for group in GROUPS
            for name, each in inspect.getmembers(type(getattr(self.client, group)), callable)
            if not name.startswith("_")
        }
        return every - self.used


class _Group:
    def __init__(self, recorder, group):
        self.recorder, self.group = recorder, group

    def __getattr__(self, name):
        self.recorder.used.add((self.group, name))
        return getattr(getattr(self.recorder.client, self.group), name)


STEP = {
    "properties": {
        "targetGroup": f"{HERE}/targetGroups/fleet",
        "credential": f"{HERE}/credentials/login",
        "action": {"value": "select 1"},
    }
}
MEMBER = {
    "type": "SqlServer",
    "serverName": "srv",
    "refreshCredential": f"{HERE}/credentials/login",
}
LOGIN = {"properties": {"username": "u", "password": "p"}}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_sync_client_uses_every_operation(control_plane, version):
    with SqlManagementClient(Credential(), "s1", **options(control_plane, version)) as client:
        sdk = Recorder(client)
        credential = sdk.job_credentials.create_or_update(*PLACE, "login", LOGIN)
        assert (credential.username, credential.password) == ("u", None)
        assert sdk.job_credentials.get(*PLACE, "login").username == "u"
        assert [c.name for c in sdk.job_credentials.list_by_agent(*PLACE)] == ["login"]
        group = sdk.job_target_groups.create_or_update(
            *PLACE, "fleet", {"properties": {"members": [MEMBER]}}
        )
        assert group.members[0].membership_type == "Include"
        assert group.members[0].refresh_credential == MEMBER["refreshCredential"]
        assert sdk.job_target_groups.get(*PLACE, "fleet").members[0].server_name == "srv"
        assert [g.name for g in sdk.job_target_groups.list_by_agent(*PLACE)] == ["fleet"]
        job = sdk.jobs.create_or_update(*PLACE, "a job", {})
        assert (job.version, job.schedule.type, job.schedule.enabled) == (0, "Once", False)
        assert job.schedule.start_time.year == 1
        job.description = "changed"
        assert sdk.jobs.create_or_update(*PLACE, "a job", job).description == "changed"
        assert sdk.jobs.get(*PLACE, "A JOB").name == "a job"
        assert [j.name for j in sdk.jobs.list_by_agent(*PLACE)] == ["a job"]
        step = sdk.job_steps.create_or_update(*PLACE, "a job", "first", STEP)
        assert (step.step_id, step.action.value, step.execution_options.retry_attempts) == (
            1, "select 1", 10,
        )  # fmt: skip
        assert step.target_group == STEP["properties"]["targetGroup"]
        assert sdk.job_steps.get(*PLACE, "a job", "first").step_id == 1
        assert [s.name for s in sdk.job_steps.list_by_job(*PLACE, "a job")] == ["first"]
        assert [v.name for v in sdk.job_versions.list_by_job(*PLACE, "a job")] == ["1", "0"]
        assert sdk.job_versions.get(*PLACE, "a job", 1).name == "1"
        assert [s.name for s in sdk.job_steps.list_by_version(*PLACE, "a job", 1)] == ["first"]
        assert sdk.job_steps.get_by_version(*PLACE, "a job", 1, "first").step_id == 1

        run = sdk.job_executions.begin_create(*PLACE, "a job").result()
        assert (run.lifecycle, run.provisioning_state, run.current_attempts) == (
            "Created",
            "Created",
            0,
        )
        chosen = str(uuid4())
        sdk.job_executions.begin_create_or_update(*PLACE, "a job", chosen, polling=False)
        assert sdk.job_executions.get(*PLACE, "a job", chosen).job_execution_id == chosen
        listed = [x.name for x in sdk.job_executions.list_by_job(*PLACE, "a job", is_active=True)]
        assert listed == [chosen, run.name]
        assert len(list(sdk.job_executions.list_by_agent(*PLACE, top=1))) == 1
        assert len(list(sdk.job_executions.list_by_agent(*PLACE, skip=1))) == 1
        engine_begins(control_plane, run.name)
        where = (*PLACE, "a job", run.name)
        steps = list(sdk.job_step_executions.list_by_job_execution(*where))
        assert [(s.name, s.step_name, s.lifecycle) for s in steps] == [
            ("first", "first", "InProgress")
        ]
        assert sdk.job_step_executions.get(*where, "first").step_id == 1
        (target,) = sdk.job_target_executions.list_by_job_execution(*where)
        assert (target.target.server_name, target.target.database_name) == ("srv", "d1")
        assert [t.name for t in sdk.job_target_executions.list_by_step(*where, "first")] == [
            target.name
        ]
        assert sdk.job_target_executions.get(*where, "first", target.name).name == target.name
        assert sdk.job_executions.cancel(*PLACE, "a job", chosen) is None
        with pytest.raises(HttpResponseError) as over:
            sdk.job_executions.cancel(*PLACE, "a job", chosen)
        assert over.value.error.code == "ElasticJobsOperationFailed"
        assert sdk.job_executions.get(*PLACE, "a job", chosen).lifecycle == "Canceled"

        endpoint = sdk.job_private_endpoints.begin_create_or_update(
            *PLACE, "way", {"properties": {"targetServerAzureResourceId": SERVER}}
        ).result()
        assert endpoint.private_endpoint_id.startswith("EJ_")
        assert (
            sdk.job_private_endpoints.get(*PLACE, "way").target_server_azure_resource_id == SERVER
        )
        assert [e.name for e in sdk.job_private_endpoints.list_by_agent(*PLACE)] == ["way"]
        for _ in range(2):
            sdk.job_private_endpoints.begin_delete(*PLACE, "way").result()
        sdk.job_steps.delete(*PLACE, "a job", "first")
        forced = {"force": "true", "api-version": "2025-01-01"}
        control_plane.http.delete(f"{HERE}/jobs/a job", params=forced).raise_for_status()
        for _ in range(2):
            sdk.jobs.delete(*PLACE, "a job")
            sdk.job_target_groups.delete(*PLACE, "fleet")
            sdk.job_credentials.delete(*PLACE, "login")
        with pytest.raises(ResourceNotFoundError) as missing:
            sdk.jobs.get(*PLACE, "a job")
        assert missing.value.error.code == "ResourceNotFound"
        assert sdk.unused() == set()


async def test_the_aio_client_uses_every_operation(control_plane):
    async with AsyncSqlManagementClient(
        Credential(), "s1", **options(control_plane, None)
    ) as client:
        sdk = Recorder(client)

        async def names(pager):
            return [each.name async for each in pager]

        assert (await sdk.job_credentials.create_or_update(*PLACE, "login", LOGIN)).name == "login"
        assert (await sdk.job_credentials.get(*PLACE, "login")).username == "u"
        assert await names(sdk.job_credentials.list_by_agent(*PLACE)) == ["login"]
        group = {"properties": {"members": [MEMBER]}}
        await sdk.job_target_groups.create_or_update(*PLACE, "fleet", group)
        assert (await sdk.job_target_groups.get(*PLACE, "fleet")).members[0].server_name == "srv"
        assert await names(sdk.job_target_groups.list_by_agent(*PLACE)) == ["fleet"]
        await sdk.jobs.create_or_update(*PLACE, "j", {})
        assert (await sdk.jobs.get(*PLACE, "j")).version == 0
        assert await names(sdk.jobs.list_by_agent(*PLACE)) == ["j"]
        await sdk.job_steps.create_or_update(*PLACE, "j", "first", STEP)
        assert (await sdk.job_steps.get(*PLACE, "j", "first")).step_id == 1
        assert await names(sdk.job_steps.list_by_job(*PLACE, "j")) == ["first"]
        assert await names(sdk.job_versions.list_by_job(*PLACE, "j")) == ["1", "0"]
        assert (await sdk.job_versions.get(*PLACE, "j", 1)).name == "1"
        assert await names(sdk.job_steps.list_by_version(*PLACE, "j", 1)) == ["first"]
        assert (await sdk.job_steps.get_by_version(*PLACE, "j", 1, "first")).step_id == 1
        run = await (await sdk.job_executions.begin_create(*PLACE, "j")).result()
        chosen = str(uuid4())
        await sdk.job_executions.begin_create_or_update(*PLACE, "j", chosen, polling=False)
        assert (await sdk.job_executions.get(*PLACE, "j", chosen)).lifecycle == "Created"
        assert await names(sdk.job_executions.list_by_job(*PLACE, "j")) == [chosen, run.name]
        assert await names(sdk.job_executions.list_by_agent(*PLACE)) == [chosen, run.name]
        await asyncio.to_thread(engine_begins, control_plane, run.name)
        where = (*PLACE, "j", run.name)
        assert await names(sdk.job_step_executions.list_by_job_execution(*where)) == ["first"]
        assert (await sdk.job_step_executions.get(*where, "first")).name == "first"
        (target,) = await names(sdk.job_target_executions.list_by_job_execution(*where))
        assert await names(sdk.job_target_executions.list_by_step(*where, "first")) == [target]
        assert (await sdk.job_target_executions.get(*where, "first", target)).name == target
        assert await sdk.job_executions.cancel(*PLACE, "j", chosen) is None
        endpoint = {"properties": {"targetServerAzureResourceId": SERVER}}
        poller = await sdk.job_private_endpoints.begin_create_or_update(*PLACE, "way", endpoint)
        assert (await poller.result()).name == "way"
        assert (await sdk.job_private_endpoints.get(*PLACE, "way")).name == "way"
        assert await names(sdk.job_private_endpoints.list_by_agent(*PLACE)) == ["way"]
        await (await sdk.job_private_endpoints.begin_delete(*PLACE, "way")).result()
        await sdk.job_steps.delete(*PLACE, "j", "first")
        forced = {"force": "true", "api-version": "2025-01-01"}
        control_plane.http.delete(f"{HERE}/jobs/j", params=forced).raise_for_status()
        await sdk.jobs.delete(*PLACE, "j")
        await sdk.job_target_groups.delete(*PLACE, "fleet")
        await sdk.job_credentials.delete(*PLACE, "login")
        assert sdk.unused() == set()


def test_what_terraform_sends_is_understood(control_plane):
    """Empty strings where nothing is meant, whole models sent back, a job without its schedule."""
    put = lambda path, body: (
        control_plane.http.put(f"{HERE}/{path}", json=body).raise_for_status().json()
    )
    put("credentials/login", LOGIN)
    put("credentials/login", {"name": "login", "properties": {"username": "v", "password": ""}})
    put("targetGroups/empty", {"properties": {"members": []}})
    put("targetGroups/fleet", {"properties": {"members": [MEMBER]}})
    every_day = {"schedule": {"type": "Recurring", "interval": "P1D", "enabled": True}}
    put("jobs/j", {"name": "j", "properties": {"description": "d", **every_day}})
    bare = put("jobs/j", {"name": "j", "properties": {"description": "d"}})
    step = {"properties": {**STEP["properties"], "stepId": 1, "credential": "", "output": None}}
    made = put("jobs/j/steps/s", step)

    assert bare["properties"]["schedule"]["enabled"] is False
    assert not {"credential", "output"} & made["properties"].keys()
    assert put("jobs/j/steps/s", made) == made
    assert put("jobs/j", control_plane.get(f"{HERE}/jobs/j"))["properties"]["version"] == 1
    assert json.dumps(made).count("password") == 0
