"""The account's roles: created, or accepted when created beforehand; dropped only if they carry our mark."""

import contextlib

import asyncpg

from muster.core.db import Connection
from muster.core.errors import Fault, Forbidden
from muster.core.scram import verifier
from muster.core.settings import Secret
from muster.core.sql import Queries
from nodeagent.control_db import APPLICATION
from nodeagent.invocation import Invocation

A = Queries("nodeagent.sql", "administer.sql")


async def ensure(connection: Connection, invocation: Invocation) -> None:
    """All roles, memberships and passwords are as wanted, or the error holds the statements to run.

    Such statements carry verifiers of random passwords: no client can log in with one.
    """
    passwords = {
        invocation.roles.agent: invocation.secret("agent_password"),
        invocation.roles.engine: invocation.secret("engine_password"),
    }
    verifiers = {role: verifier(password) for role, password in passwords.items()}
    missing = await _missing(connection, invocation, verifiers)
    try:
        async with connection.transaction():
            for row in missing:
                await connection.execute(row["statement"])
                if row["mark"]:
                    await connection.execute(row["mark"])
    except asyncpg.InsufficientPrivilegeError as error:
        raise _refused(invocation, [row["statement"] for row in missing]) from error
    # A GRANT that granted nothing is only a warning.
    if left := await _missing(connection, invocation, verifiers):
        raise _refused(invocation, [row["statement"] for row in left])
    made = {row["made"] for row in missing}
    for role, password in passwords.items():
        if role not in made:
            await _set_password(connection, invocation, role, password, verifiers[role])


async def close_to_public(connection: Connection, invocation: Invocation) -> None:
    """Only the account's roles may connect: a login without rights could still use up sessions.

    Where the login may not revoke that, `doctor` shows what to run.
    """
    with contextlib.suppress(asyncpg.InsufficientPrivilegeError):
        async with connection.transaction():
            for row in await connection.fetch(A.close_to_public, invocation.roles.prefix):
                await connection.execute(row[0])


async def drop(connection: Connection, invocation: Invocation) -> None:
    """Groups first, since the owner may have granted them to others."""
    names = [
        *invocation.roles.groups,
        invocation.roles.agent,
        invocation.roles.engine,
        invocation.roles.owner,
    ]
    for row in await connection.fetch(A.drop_roles, names):
        await connection.execute(row[0])


async def _missing(
    connection: Connection, invocation: Invocation, verifiers: dict[str, str]
) -> list[asyncpg.Record]:
    agent, engine = verifiers[invocation.roles.agent], verifiers[invocation.roles.engine]
    return await connection.fetch(A.missing_roles, invocation.roles.prefix, agent, engine)


async def _set_password(
    connection: Connection, invocation: Invocation, role: str, password: Secret, verifier: str
) -> None:
    statement = await connection.fetchval(A.password, role, verifier)
    try:
        async with connection.transaction():
            await connection.execute(statement)
    except asyncpg.InsufficientPrivilegeError as error:
        if not await _opens(invocation, role, password):
            raise _refused(invocation, [statement]) from error


async def _opens(invocation: Invocation, role: str, password: Secret) -> bool:
    """A role that was created beforehand may have the password already."""
    access = invocation.access
    try:
        async with invocation.services.connector.session(
            access.endpoint.direct(),
            user=role,
            password=password,
            database=access.database,
            application_name=APPLICATION,
        ):
            return True
    except Fault as fault:
        if fault.code == "ConnectNotGranted":  # its password was accepted before that was looked at
            return True
        if fault.code == "TargetAuthenticationFailed":
            return False
        raise


def _refused(invocation: Invocation, statements: list[str]) -> Forbidden:
    return Forbidden(
        f"The login '{invocation.access.user}' may not set up the roles of the account. "
        f"Let an administrator of the server run: {'; '.join(statements)};",
        code="ControlDatabaseRightsMissing",
    )
