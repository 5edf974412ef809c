"""The account's roles: made, or accepted when made beforehand; dropped only if they carry our mark."""

import contextlib

import asyncpg

from muster.core.db import Connection
from muster.core.errors import Fault, Forbidden
from muster.core.scram import verifier
from muster.core.settings import Secret
from nodeagent.control_db import APPLICATION
from nodeagent.invocation import Work
from nodeagent.sql_administer import A


async def ensure(connection: Connection, work: Work) -> None:
    """All roles, memberships and passwords are as wanted, or the error holds the statements to run.

    Such statements carry verifiers of random passwords: nobody can log in with one.
    """
    passwords = {
        work.roles.agent: work.secret("agent_password"),
        work.roles.engine: work.secret("engine_password"),
    }
    verifiers = {role: verifier(password) for role, password in passwords.items()}
    missing = await _missing(connection, work, verifiers)
    try:
        async with connection.transaction():
            for row in missing:
                await connection.execute(row["statement"])
                if row["mark"]:
                    await connection.execute(row["mark"])
    except asyncpg.InsufficientPrivilegeError as error:
        raise _refused(work, [row["statement"] for row in missing]) from error
    # A GRANT that granted nothing is only a warning.
    if left := await _missing(connection, work, verifiers):
        raise _refused(work, [row["statement"] for row in left])
    made = {row["made"] for row in missing}
    for role, password in passwords.items():
        if role not in made:
            await _set_password(connection, work, role, password, verifiers[role])


async def close_to_public(connection: Connection, work: Work) -> None:
    """Only the account's roles may connect: a login without rights could still use up sessions.

    Where the login may not revoke that, `doctor` shows what to run.
    """
    with contextlib.suppress(asyncpg.InsufficientPrivilegeError):
        async with connection.transaction():
            for row in await connection.fetch(A.close_to_public, work.roles.prefix):
                await connection.execute(row[0])


async def drop(connection: Connection, work: Work) -> None:
    """Groups first, since the owner may have granted them to others."""
    names = [*work.roles.groups, work.roles.agent, work.roles.engine, work.roles.owner]
    for row in await connection.fetch(A.drop_roles, names):
        await connection.execute(row[0])


async def _missing(
    connection: Connection, work: Work, verifiers: dict[str, str]
) -> list[asyncpg.Record]:
    agent, engine = verifiers[work.roles.agent], verifiers[work.roles.engine]
    return await connection.fetch(A.missing_roles, work.roles.prefix, agent, engine)


async def _set_password(
    connection: Connection, work: Work, role: str, password: Secret, verifier: str
) -> None:
    statement = await connection.fetchval(A.password, role, verifier)
    try:
        async with connection.transaction():
            await connection.execute(statement)
    except asyncpg.InsufficientPrivilegeError as error:
        if not await _opens(work, role, password):
            raise _refused(work, [statement]) from error


async def _opens(work: Work, role: str, password: Secret) -> bool:
    """Whoever made the role beforehand may have given it the password already."""
    access = work.access
    try:
        async with work.means.connector.session(
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


def _refused(work: Work, statements: list[str]) -> Forbidden:
    return Forbidden(
        f"The login '{work.access.user}' may not set up the roles of the account. "
        f"Let an administrator of the server run: {'; '.join(statements)};",
        code="ControlDatabaseRightsMissing",
    )
