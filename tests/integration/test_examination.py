"""What is found missing at a real server, and that the printed statements are exactly what is missing."""

import asyncio
import contextlib
from uuid import UUID

import pytest

from engine.access.credentials import Credentials
from engine.targets import findings, rights
from engine.targets.examination import Examination, Needs
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.errors import Fault
from muster.core.settings import Secret
from tests.support.attempts import IDENTITY, a_target_database, settings
from tests.support.postgres import Role

pytestmark = [pytest.mark.newest, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def a_role(target, name, options="login"):
    role = Role(name, "it's a secret")
    quoted = name.replace('"', '""')
    await target.execute(f"create role \"{quoted}\" {options} password 'it''s a secret'")
    try:
        yield role
    finally:
        await target.execute(f'drop owned by "{quoted}" cascade; drop role "{quoted}"')


def examination() -> Examination:
    credentials = Credentials(UUID(int=1), Secret(""), ("file:",), Clock())
    return Examination(Connector(settings()), credentials, IDENTITY, lambda _: asyncio.Lock(), ())


async def found(target, role, needs):
    who = target.who(role, name="fleet", secret=f"file:{target.home / 'secret'}")
    (target.home / "secret").write_text(role.password)
    try:
        facts = await examination().rights(target.server, target.database, who, needs)
    except Fault as fault:
        return [findings.failure(fault, target.database, role.name)]
    return list(rights.findings(target.database, needs, facts))


async def test_the_printed_grants_are_what_is_missing(target):
    login, owner = f'{target.database} "job', f"{target.database} Owner's"
    async with a_role(target, login) as role, a_role(target, owner, "nologin"):
        await target.execute(
            f'revoke connect on database {target.database} from public; create schema "Tenant ""1"'
        )
        needs = Needs(schema='Tenant "1', roles=(owner, None), guarded=True, writes=True)

        first = await found(target, role, needs)
        for statement in first[0].grants:
            await target.execute(statement)
        second = await found(target, role, needs)
        for statement in [grant for each in second for grant in each.grants]:
            await target.execute(statement)
        third = await found(target, role, needs)

    assert [each.code for each in first] == ["ConnectNotGranted"]
    assert [each.code for each in second] == [
        "GuardNotGranted", "SchemaNotGranted", "RoleNotGranted", "SchemaNotGranted",
    ]  # fmt: skip
    assert third == []


async def test_what_no_grant_can_give_has_none(target):
    needs = Needs(schema="gone", roles=("nobody_there", None))

    missing = await found(target, target.owner, needs)

    assert [(each.code, each.grants) for each in missing] == [
        ("SchemaNotFound", ()), ("RoleNotFound", ()),
    ]  # fmt: skip


async def test_databases_and_schemas_without_rights_are_listed_and_the_account_s_own_are_not(
    target,
):
    agent = f"muster_{UUID(int=5).hex}_agent"
    async with a_role(target, f"{target.database}_job") as role, a_role(target, agent):
        await target.execute(
            f"revoke connect on database {target.database} from public; create schema hidden"
        )
        who = target.who(role)

        before = {
            each.name: each.reason for each in await examination().databases(target.server, who)
        }
        await target.execute(f"grant connect on database {target.database} to {agent}")
        after = {
            each.name: each.reason for each in await examination().databases(target.server, who)
        }
        listed = await examination().schemas(target.server, target.database, "hid%", target.who())

    assert (before[target.database], after[target.database]) == (None, "ConnectNotGranted")
    assert listed == ["hidden"]
