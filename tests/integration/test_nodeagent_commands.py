"""Every command twice, the journal, the directory, and who is let in over HTTP."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import msgspec
import pytest

from muster.core.clock import Clock
from muster.core.errors import Conflict, Fault, InvalidRequest, Unavailable
from muster.core.secrets import Keyring
from muster.core.settings import Secret
from nodeagent import client, registry
from nodeagent.items import (
    Ask,
    CancelExecution,
    ContinueExecution,
    ReplayDeliveries,
    RerunExecution,
    SendTestEvent,
    RetryTarget,
    DecidePrivateEndpoint,
    DeleteItem,
    Diagnose,
    GetItem,
    ListItems,
    PatchItem,
    PutCredential,
    PutJob,
    PutJobWithSteps,
    PutPrivateEndpoint,
    PutStep,
    PutTargetGroup,
    PutWebhook,
    ReadExecution,
    ReadJournal,
    ReadReachedServers,
    ReadRequest,
    ReadServerUsers,
    RunQuery,
    StartJob,
)
from nodeagent.command_table import COMMANDS, SPECS
from nodeagent.protocol import (
    Class,
    DirectoryPool,
    DirectoryServer,
    Drain,
    Pause,
    ReadEpoch,
    RemoveSchema,
    Resume,
    SyncDirectory,
    UpgradeSchema,
    VerifySchema,
)
from nodeagent.tokens import Tokens
from nodeagent.wire import CommandError, Request
from tests.support.control_db import SERVER, URL, a_control_database, agent_beside

EU1 = DirectoryServer(
    server_id=SERVER, name="eu1", hosts=("eu1.example.com",), labels={"tier": "gold"},
    pools=(DirectoryPool(name="p", pattern="tenant_%"),),
)  # fmt: skip
US1 = DirectoryServer(server_id="/us1", name="us1", hosts=("us1.example.com",), port=6432)

EXAMPLES = {
    "upgrade_schema": UpgradeSchema(),
    "verify_schema": VerifySchema(),
    "sync_directory": SyncDirectory(revision=3, servers=(EU1,)),
    "read_epoch": ReadEpoch(),
    "put_credential": PutCredential(name="c", username="u", secret="env:FLEET"),
    "put_target_group": PutTargetGroup(
        name="g", document={"members": [{"type": "SqlServer", "serverName": "eu1"}]}
    ),
    "put_job": PutJob(name="j", document={"description": "d"}),
    "put_job_with_steps": PutJobWithSteps(
        name="jws",
        document={"description": "d"},
        steps=(
            {
                "name": "s",
                "script": "select 1",
                "targetGroup": {"name": "g"},
                "credential": {"name": "c"},
            },
        ),
    ),
    "put_step": PutStep(
        job="j",
        name="s",
        document={"script": "select 1", "targetGroup": {"name": "g"}, "credential": {"name": "c"}},
    ),
    "patch_item": PatchItem(kind="jobs", path=("j",), patch={"owner": "o"}),
    "put_private_endpoint": PutPrivateEndpoint(name="p", document={"serverId": SERVER}),
    "decide_private_endpoint": DecidePrivateEndpoint(name="p", status="Approved", server_id=SERVER),
    "put_webhook": PutWebhook(
        name="w",
        document={"url": "https://w.example.com", "events": ["failed"]},
        secret="sealed:x",
    ),
    "send_test_event": SendTestEvent(name="w"),
    "replay_deliveries": ReplayDeliveries(name="w"),
    "start_job": StartJob(job="j", execution_id=UUID(int=1)),
    "read_execution": ReadExecution(kind="results", path=("j", str(UUID(int=1)))),
    "run_query": RunQuery(
        document={"script": "select 1", "targetGroup": {"name": "g"}, "timeoutSeconds": 60}
    ),
    "continue_execution": ContinueExecution(job="j", execution_id=UUID(int=1)),
    "rerun_execution": RerunExecution(
        job="j", execution_id=UUID(int=1), document={"only": ["failed"]}
    ),
    "retry_target": RetryTarget(
        job="j", execution_id=UUID(int=1), step="s", target=str(UUID(int=4))
    ),
    "cancel_execution": CancelExecution(job="j", execution_id=UUID(int=1), reason="enough"),
    "ask": Ask(request_id=UUID(int=2), kind="resolve", args={"targetGroup": "g"}),
    "read_request": ReadRequest(request_id=UUID(int=2)),
    "read_server_users": ReadServerUsers(server_ids=(SERVER,)),
    "read_reached_servers": ReadReachedServers(kind="jobs", names=("j", "none")),
    "diagnose": Diagnose(),
    "read_journal": ReadJournal(command_id=UUID(int=3)),
    "get_item": GetItem(kind="jobs", path=("j",)),
    "list_items": ListItems(kind="executions", path=()),
    "delete_item": DeleteItem(kind="privateEndpoints", path=("p",)),
    "drain": Drain(),
    "pause": Pause(),
    "resume": Resume(),
}

# A step of the run is halted, and one of its targets has failed.
HALT = """
insert into jobs_internal.snapshot (snapshot_id, target_group_id, group_hash, directory_revision, targets, targets_hash)
values (gen_random_uuid(), gen_random_uuid(), '', 1, 1, '');
insert into jobs_internal.snapshot_target (snapshot_id, ordinal, target_id, target_type, server_id, server_name,
                                           database_name, rule)
select s.snapshot_id, 1, '00000000-0000-0000-0000-000000000004', 'SqlDatabase', '/s', 's', 'd', gen_random_uuid() from jobs_internal.snapshot s;
insert into jobs_internal.step_execution (run_day, job_execution_id, step_id, step_name, content_hash, snapshot_id,
                                          lifecycle, halted_at, halt_rule, wait_reason)
select x.run_day, x.job_execution_id, 1, 's', '', s.snapshot_id, 'WaitingForChildJobExecutions', now(),
       'FailureLimit', 'Halted'
  from jobs_internal.snapshot s, jobs_internal.job_execution x
  join jobs_internal.job j using (job_id) where j.name = 'j';
insert into jobs_internal.target_execution (run_day, job_execution_id, step_id, ordinal, snapshot_id, lifecycle, end_time)
select e.run_day, e.job_execution_id, 1, 1, e.snapshot_id, 'Failed', now() from jobs_internal.step_execution e;
"""


@pytest.fixture
async def agent(settings, db):
    async with agent_beside(settings, db) as made:
        yield made


@pytest.fixture
async def account(agent, targets):
    made = await a_control_database(targets)
    await agent.install(made)
    return made


def test_every_command_is_run_twice_somewhere():
    assert set(EXAMPLES) | {"install_schema", "remove_schema"} == set(COMMANDS)


async def test_each_command_run_twice_leaves_the_same_and_answers_the_same(agent, account):
    for name, command in EXAMPLES.items():
        command_id = uuid4()
        if name == "continue_execution":
            await account.execute(HALT)
        first = await agent.run(account, command, command_id)
        before = await account.state()

        again = await agent.run(account, command, command_id)

        if name == "read_epoch":
            first, again = (
                msgspec.structs.replace(r, read_at=first.read_at) for r in (first, again)
            )
        assert again == first, name
        assert await account.state() == before, name


async def test_a_repeat_answers_as_the_first_run_did_even_after_the_world_moved_on(agent, account):
    pausing = uuid4()
    await agent.run(account, Pause(), pausing)
    await agent.run(account, Resume())

    assert (await agent.run(account, Pause(), pausing)).paused is True

    assert (await agent.run(account, ReadEpoch())).paused is False


async def test_ten_at_once_with_one_id_have_one_effect(agent, account):
    command_id = uuid4()
    sync = SyncDirectory(revision=9, servers=(EU1,))

    answers = await asyncio.gather(*(agent.run(account, sync, command_id) for _ in range(10)))

    assert all(answer.applied for answer in answers)
    rows = await account.fetch(
        "select caller, login, door from jobs_internal.audit where action = 'sync_directory'"
    )
    assert [tuple(row) for row in rows] == [("muster", account.roles.agent, "fsm")]


async def test_one_id_for_two_commands_is_a_conflict(agent, account):
    command_id = uuid4()
    await agent.run(account, Pause(), command_id)

    with pytest.raises(Conflict):
        await agent.run(account, Resume(), command_id)


async def test_a_restarted_agent_knows_the_journal(settings, db, agent, account):
    command_id = uuid4()
    first = await agent.run(account, SyncDirectory(revision=5, servers=(EU1,)), command_id)

    async with agent_beside(settings, db) as another:
        again = await another.run(account, SyncDirectory(revision=5, servers=(EU1,)), command_id)

    assert again == first
    assert first.applied is True


async def test_a_directory_shows_exactly_the_newest_revision(agent, account):
    shown = "select server_id, port, revision, pools::text from jobs_internal.server_directory order by 1"
    await agent.run(account, SyncDirectory(revision=2, servers=(EU1, US1)))

    newer = await agent.run(
        account, SyncDirectory(revision=4, servers=(EU1, msgspec.structs.replace(US1, port=7000)))
    )
    older = await agent.run(account, SyncDirectory(revision=3, servers=()))

    assert (newer.applied, newer.revision) == (True, 4)
    assert (older.applied, older.revision) == (False, 4)
    rows = await account.fetch(shown)
    assert [tuple(row)[:3] for row in rows] == [(SERVER, 5432, 2), ("/us1", 7000, 4)]
    assert "tenant_%" in rows[0]["pools"]
    await agent.run(account, SyncDirectory(revision=5, servers=(US1,)))
    assert len(await account.fetch(shown)) == 1


async def test_a_directory_that_can_not_be_is_refused_as_a_whole(agent, account):
    await agent.run(account, SyncDirectory(revision=1, servers=(EU1,)))

    with pytest.raises(Conflict):
        wrong = msgspec.structs.replace(US1, port=70_000)
        await agent.run(account, SyncDirectory(revision=2, servers=(wrong,)))

    assert (await agent.run(account, ReadEpoch())).directory_revision == 1


async def send(agent, account, command, *, token=None, body=None, to: UUID | None = None):
    """As `AgentClient` would, with one thing wrong."""
    spec = SPECS[type(command)]
    role = "administrator" if spec.cls is Class.ADMINISTER else "agent"
    args = msgspec.Raw(msgspec.json.encode(command))
    login = account.login(agent.keyring, role)
    sent = msgspec.json.encode(Request(command=spec.name, args=args, login=login))
    command_id = uuid4()
    make = token or (lambda tokens, body: tokens.sign(account.uid, command_id, spec.cls, body))
    headers = {"Authorization": f"Bearer {make(Tokens(agent.keyring, Clock()), sent)}"}
    path = f"/v1/accounts/{to or account.uid}/commands/{command_id}"
    return await agent.http.post(URL + path, content=body(sent) if body else sent, headers=headers)


async def test_a_token_opens_only_what_it_was_made_for(agent, account):
    class Earlier(Clock):
        def now(self):
            return super().now() - timedelta(minutes=5)

    def of(account_uid=account.uid, cls=Class.OPERATE, clock=None, keyring=agent.keyring):
        def make(_tokens, body):
            return Tokens(keyring, clock or Clock()).sign(account_uid, uuid4(), cls, body)

        return make

    stranger = Keyring(Secret("test:" + "B" * 43 + "="))
    statuses = {
        "good": await send(agent, account, Pause()),
        "no token": await send(agent, account, Pause(), token=lambda *_: ""),
        "expired": await send(agent, account, Pause(), token=of(clock=Earlier())),
        "foreign key": await send(agent, account, Pause(), token=of(keyring=stranger)),
        "other account": await send(agent, account, Pause(), token=of(uuid4())),
        "other command": await send(agent, account, Pause(), token=of()),
        "moved to another account": await send(agent, account, Pause(), to=uuid4()),
        "tampered": await send(
            agent, account, Pause(), body=lambda b: b.replace(b"pause", b"drain")
        ),
    }

    assert {name: answer.status_code for name, answer in statuses.items()} == {
        "good": 200, "no token": 401, "expired": 401, "foreign key": 401, "other account": 403,
        "other command": 403, "moved to another account": 403, "tampered": 403,
    }  # fmt: skip


async def test_a_token_to_operate_does_not_administer(agent, account):
    removal = RemoveSchema(drop_schema=True)
    command_id = uuid4()
    login = account.login(agent.keyring, "administrator")
    args = msgspec.Raw(msgspec.json.encode(removal))
    body = msgspec.json.encode(Request(command="remove_schema", args=args, login=login))
    token = Tokens(agent.keyring, Clock()).sign(account.uid, command_id, Class.OPERATE, body)

    answer = await agent.http.post(
        f"{URL}/v1/accounts/{account.uid}/commands/{command_id}",
        content=body, headers={"Authorization": f"Bearer {token}"},
    )  # fmt: skip

    assert answer.status_code == 403
    assert msgspec.json.decode(answer.content, type=CommandError).code == "TokenNotForThis"
    assert len(await account.role_rows()) == 6


async def test_a_password_sealed_for_another_account_does_not_open(agent, account, targets):
    other = await a_control_database(targets)
    login = msgspec.structs.replace(
        account.login(agent.keyring, "agent"), password=other.login(agent.keyring).password
    )

    with pytest.raises(InvalidRequest):
        await agent.client.run(account.uid, uuid4(), ReadEpoch(), login)


async def test_no_secret_is_ever_logged(agent, account, capfd):
    account.agent_password += "wrong"

    with pytest.raises(Fault):
        await agent.run(account, ReadEpoch())
    await agent.install(account)

    seen = capfd.readouterr()
    for secret in (account.agent_password, account.engine_password, account.administrator.password):
        assert secret not in seen.out + seen.err


async def test_sessions_are_bounded_per_database_and_closed_when_idle(settings, db, targets):
    settings = replace(settings, node_agent_pool=2, node_agent_idle=timedelta(milliseconds=40))
    async with agent_beside(settings, db) as agent:
        account = await a_control_database(targets)
        await agent.install(account)
        count = "select count(*) from pg_stat_activity where usename = $1"

        await asyncio.gather(*(agent.run(account, ReadEpoch()) for _ in range(12)))
        assert (await account.fetch(count, account.roles.agent))[0][0] <= 2

        stop = asyncio.Event()
        sweeping = asyncio.create_task(agent.databases.run(stop))
        async with asyncio.timeout(5):
            while (await account.fetch(count, account.roles.agent))[0][0]:
                await asyncio.sleep(0.02)
        stop.set()
        await sweeping


async def test_large_writes_leave_a_session_for_others(settings, db, targets, monkeypatch):
    monkeypatch.setattr("nodeagent.control_db.LARGE", 0)  # every write is large
    async with agent_beside(replace(settings, node_agent_pool=2), db) as agent:
        account = await a_control_database(targets)
        await agent.install(account)
        holder = await account.connect("root")
        waiting = "select from pg_stat_activity where usename = $1 and wait_event_type = 'Lock'"
        async with holder.transaction():
            await holder.execute("select from jobs_internal.instance for update")
            writes = [asyncio.create_task(agent.run(account, Pause())) for _ in range(6)]
            async with asyncio.timeout(5):
                while not await account.fetch(waiting, account.roles.agent):
                    await asyncio.sleep(0.01)

            assert (await agent.run(account, ReadEpoch())).epoch == 0

        await holder.close()
        assert {each.paused for each in await asyncio.gather(*writes)} == {True}


async def test_a_command_that_takes_too_long_is_given_up_and_leaves_nothing(
    agent, account, monkeypatch
):
    quick = {name: replace(spec, seconds=0.3) for name, spec in COMMANDS.items()}
    monkeypatch.setattr("nodeagent.server.COMMANDS", quick)
    holder = await account.connect("root")
    command_id = uuid4()

    async with holder.transaction():
        await holder.execute("select from jobs_internal.instance for update")
        with pytest.raises(Unavailable):
            await agent.run(account, Pause(), command_id)
    await holder.close()

    assert (
        await account.fetch("select from jobs_internal.command_journal where command = 'pause'")
        == []
    )
    assert (await agent.run(account, Pause(), command_id)).paused is True


async def test_without_a_live_agent_commands_are_unavailable(settings, db, agent, account):
    assert await client.route(db, SERVER.upper(), settings) == URL
    await db.execute("update node_agents set heartbeat_at = now() - interval '1 hour'")
    another = client.AgentClient(settings, db, agent.keyring, http=agent.http)  # remembers nobody

    with pytest.raises(Unavailable) as caught:
        await replace(agent, client=another).run(account, ReadEpoch())

    assert caught.value.code == "NodeAgentUnavailable"


async def test_an_agent_gets_only_the_servers_it_stands_beside(settings, db):
    beside = replace(settings, node_agent_servers=("/Servers/EU1",), node_agent_name="eu")
    everywhere = replace(settings, node_agent_name="any")
    for each, url in ((beside, "http://eu"), (everywhere, "http://any")):
        await registry.Registration(db, each, url, Clock()).beat()

    assert await registry.routes(db, "/servers/eu1", settings) == ["http://eu", "http://any"]
    assert await registry.routes(db, "/servers/us1", settings) == ["http://any"]
