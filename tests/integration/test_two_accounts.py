"""Two accounts with control databases on one server: nothing that one of them holds opens the other's.

No login here is a superuser's, but the one that looks at what has changed.
"""

from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest

from fsm.launch.protocol import Kind
from fsm.launch.workload import Workload
from muster.core.clock import Clock
from muster.core.errors import Conflict, Forbidden, InvalidRequest
from nodeagent.command_table import COMMANDS, Spec
from nodeagent.protocol import (
    Class,
    Drain,
    Pause,
    ReadEpoch,
    RemoveSchema,
    SyncDirectory,
    UpgradeSchema,
    VerifySchema,
)
from nodeagent.tokens import Tokens
from nodeagent.wire import CommandError, Request
from tests.support.control_db import URL, Account, Agent, a_control_database, agent_beside
from tests.support.launching import QueueFixture, quick

OPERATIONS = (Pause(), Drain(), SyncDirectory(revision=9, servers=()), ReadEpoch(), VerifySchema())
READABLE = """
select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('jobs', 'jobs_internal') and c.relkind in ('r', 'p', 'v')
   and (has_any_column_privilege(c.oid, 'select, insert, update') or has_table_privilege(c.oid, 'delete, truncate'))
union all
select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
 where n.nspname in ('jobs', 'jobs_internal') and has_function_privilege(p.oid, 'execute')
union all
select n.nspname from pg_namespace n
 where n.nspname in ('jobs', 'jobs_internal') and has_schema_privilege(n.oid, 'usage, create')
"""
TRIED = (
    "select jobs_internal.read_epoch()",
    "select jobs_internal.heartbeat(0)",
    "select jobs_internal.install_epoch(99, gen_random_uuid(), 'here', '99.0.0')",
    "select jobs_internal.drain_hosts(0)",
    "select * from jobs_internal.instance",
    "select * from jobs_internal.account_key",
    "update jobs_internal.instance set paused = true",
    "create table jobs.mine (x int)",
    "create schema mine",
)


@dataclass
class AccountPair:
    agent: Agent
    ours: Account
    theirs: Account

    async def send(
        self, spec: Spec, to: Account, *, signed_for: UUID, cls: Class
    ) -> tuple[int, str]:
        """A command with a good login, under a token that was made for something else."""
        login = to.login(self.agent.keyring, role_for(spec.cls))
        request = Request(command=spec.name, args=msgspec.Raw(b"{}"), login=login)
        body = msgspec.json.encode(request)
        id = uuid4()
        token = Tokens(self.agent.keyring, Clock()).sign(signed_for, id, cls, body)
        answer = await self.agent.http.post(
            f"{URL}/v1/accounts/{to.uid}/commands/{id}",
            content=body,
            headers={"Authorization": f"Bearer {token}"},
        )
        said = msgspec.json.decode(answer.content, type=CommandError)
        return answer.status_code, said.code


@pytest.fixture
async def account_pair(settings, db, targets):
    async with agent_beside(settings, db) as agent:
        accounts = [await a_control_database(targets), await a_control_database(targets)]
        for each in accounts:
            await agent.install(each)
        yield AccountPair(agent, *accounts)


def role_for(cls: Class) -> str:
    return "administrator" if cls is Class.ADMINISTER else "agent"


def commands(cls: Class) -> list[Spec]:
    return [spec for spec in COMMANDS.values() if spec.cls is cls]


@pytest.mark.parametrize("cls", Class)
async def test_a_token_of_one_account_commands_nothing_in_the_other(account_pair, cls):
    before = await account_pair.theirs.state()

    for spec in commands(cls):
        answer = await account_pair.send(
            spec, account_pair.theirs, signed_for=account_pair.ours.uid, cls=cls
        )
        assert answer == (403, "TokenNotForThis"), spec.name

    assert await account_pair.theirs.state() == before


@pytest.mark.parametrize("cls", Class)
async def test_a_token_of_one_class_commands_nothing_of_the_other(account_pair, cls):
    (other,) = set(Class) - {cls}
    before = await account_pair.ours.state()

    for spec in commands(cls):
        answer = await account_pair.send(
            spec, account_pair.ours, signed_for=account_pair.ours.uid, cls=other
        )
        assert answer == (403, "TokenNotForThis"), spec.name

    assert await account_pair.ours.state() == before


@pytest.mark.parametrize("cls", Class)
async def test_a_login_that_was_sealed_for_one_account_does_not_open_for_the_other(
    account_pair, cls
):
    login = account_pair.theirs.login(account_pair.agent.keyring, role_for(cls))

    with pytest.raises(InvalidRequest) as refused:
        command = UpgradeSchema() if cls is Class.ADMINISTER else ReadEpoch()
        await account_pair.agent.client.run(account_pair.ours.uid, uuid4(), command, login)

    assert refused.value.code == "SealedValue"


async def test_the_agent_s_role_of_one_account_finds_nothing_in_the_other_s_database(account_pair):
    before = await account_pair.theirs.state()
    astray = replace(account_pair.ours, database=account_pair.theirs.database)

    for command in OPERATIONS:
        with pytest.raises(Forbidden) as refused:
            await account_pair.agent.run(astray, command)
        assert refused.value.code == "ControlDatabasePermissionDenied"

    assert await account_pair.theirs.state() == before


async def test_a_control_database_is_not_taken_over_or_removed_by_the_other_account(account_pair):
    before = await account_pair.theirs.state()
    astray = replace(account_pair.ours, database=account_pair.theirs.database)

    with pytest.raises(InvalidRequest) as refused:
        await account_pair.agent.install(astray)
    assert refused.value.code == "ControlDatabaseOccupied"
    with pytest.raises(Conflict):
        await account_pair.agent.run(astray, RemoveSchema(drop_schema=True))

    assert await account_pair.theirs.state() == before
    assert (
        await account_pair.agent.run(account_pair.theirs, ReadEpoch())
    ).account_uid == account_pair.theirs.uid


@pytest.mark.parametrize("role", ["agent", "engine"])
async def test_a_role_of_one_account_reads_and_changes_nothing_of_the_other(account_pair, role):
    before = await account_pair.theirs.state()
    connection = await account_pair.ours.connect(role, account_pair.theirs.database)
    try:
        assert await connection.fetch(READABLE) == []
        for statement in (*TRIED, *(f"set role {each}" for each in account_pair.theirs.roles.all)):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
    finally:
        await connection.close()

    assert await account_pair.theirs.state() == before


@pytest.mark.parametrize("role", ["agent", "engine"])
async def test_a_role_of_one_account_is_no_superuser_and_in_no_role_of_the_other(
    account_pair, role
):
    (row,) = await account_pair.ours.fetch(
        "select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as mighty,"
        "       array(select t.rolname from pg_roles t"
        "              where t.rolname like $1 and pg_has_role(r.oid, t.oid, 'member')) as inside"
        "  from pg_roles r where r.rolname = current_user",
        account_pair.theirs.roles.prefix + "%",
        role=role,
    )

    assert (row["mighty"], row["inside"]) == (False, [])


async def test_one_account_s_sessions_do_not_end_the_other_s(account_pair):
    theirs = await account_pair.theirs.connect("engine")
    ours = await account_pair.ours.connect("engine")
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ours.execute("select pg_terminate_backend($1)", theirs.get_server_pid())
        assert await theirs.fetchval("select 1") == 1
    finally:
        await ours.close()
        await theirs.close()


# The Workload API


async def a_workload(queue: QueueFixture, account: Account, kind: Kind) -> Workload:
    return await queue.at("running", kind, account_uid=account.uid, epoch=1)


@pytest.mark.parametrize("kind", [Kind.ENGINE, Kind.HOST])
async def test_a_token_of_one_account_s_engine_says_nothing_for_the_other_s_workload(
    account_pair, settings, db, tmp_path, kind
):
    queue = QueueFixture(db, quick(settings, tmp_path))
    ours = await a_workload(queue, account_pair.ours, Kind.ENGINE)
    theirs = await a_workload(queue, account_pair.theirs, kind)
    before = await queue.get(theirs)

    said = {"workloadId": str(theirs.id)}
    async with queue.client(await queue.token(ours)) as client:
        answers = [await client.get(f"/{theirs.id}")]
        for verb in (
            "claim",
            "launched",
            "running",
            "heartbeat",
            "success",
            "failure",
            "cancel",
            "gone",
        ):
            answers.append(await client.put(f"/{verb}", json=said))
        answers.append(await client.post("/create", json=said))
        assert {each.status_code for each in answers} == {403}
        assert not any(str(account_pair.theirs.uid) in each.text for each in answers)
        assert (await client.put("/heartbeat", json={"workloadId": str(ours.id)})).is_success

    assert await queue.get(theirs) == before


async def test_a_command_that_an_engine_asks_for_is_its_own_account_s(
    account_pair, settings, db, tmp_path
):
    queue = QueueFixture(db, quick(settings, tmp_path))
    ours = await a_workload(queue, account_pair.ours, Kind.ENGINE)
    theirs = await a_workload(queue, account_pair.theirs, Kind.ENGINE)
    wanted = {"workloadId": str(uuid4()), "mutexKey": "one"}

    async with queue.client(await queue.token(theirs)) as client:
        assert (await client.post("/create", json=wanted)).is_success
    async with queue.client(await queue.token(ours)) as client:
        stolen = await client.post("/create", json=wanted)
        superseded = await client.post("/create", json=wanted | {"workloadId": str(uuid4())})

    assert (stolen.status_code, superseded.is_success) == (403, True)
    made = await queue.get(UUID(wanted["workloadId"]))
    assert (made.account_uid, made.state) == (account_pair.theirs.uid, "pending")
