"""A control database to define jobs in, and its functions by name.

admin = await a_definer(account)                       a session of the server's administrator
await admin.call("sp_add_job", job_name="nightly")     the one value that it gives
await admin.refused("MU011", "sp_add_job", job_name="Nightly")     the error
"""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.support.control_db import Account

# Each names pg_catalog.
CATALOG_PATHS = ("pg_catalog", "public, PG_Catalog", 'a,"pg_catalog" ,b', "a,\tpg_catalog\n")
SERVERS = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, revision)
values ('/eu1', 'eu1', '{Db1.example.com,db2.example.com}', 5432, 'disable', 1),
       ('/us1', 'us1', '{us1.example.com}', 5432, 'disable', 1)
"""


class Definer:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    async def call(self, function: str, **named: Any) -> Any:
        """Values that are lists or dicts go as JSON, but those of a path."""
        schema = "jobs" if function.startswith("sp_") else "jobs_internal"
        given = ", ".join(f"{name} => ${number}" for number, name in enumerate(named, 1))
        values = [
            json.dumps(value) if isinstance(value, (dict, list)) and name != "p_path" else value
            for name, value in named.items()
        ]
        found = await self.connection.fetchval(
            f"select * from {schema}.{function}({given})", *values
        )
        return json.loads(found) if function in DOCUMENTS else found

    async def refused(
        self, sqlstate: str, function: str, **named: Any
    ) -> asyncpg.exceptions.PostgresError:
        with pytest.raises(asyncpg.PostgresError) as caught:
            await self.call(function, **named)
        assert caught.value.sqlstate == sqlstate, caught.value
        return caught.value

    async def rows(self, query: str, *args: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.connection.fetch(query, *args)]

    async def value(self, query: str, *args: Any) -> Any:
        return await self.connection.fetchval(query, *args)


DOCUMENTS = {
    "get_item", "list_items", "delete_item", "patch_item", "put_credential", "put_target_group", "put_job", "put_job_with_steps",
    "put_step", "put_private_endpoint", "decide_private_endpoint",
}  # fmt: skip


@contextlib.asynccontextmanager
async def a_definer(account: Account, role: str = "administrator") -> AsyncIterator[Definer]:
    connection = await account.connect(role)
    try:
        if role == "root":
            await connection.execute(f'set role "{account.roles.owner}"')
        yield Definer(connection)
    finally:
        await connection.close()


async def some_steps(admin: Definer, *names: str, job: str = "nightly") -> None:
    """A job with these steps on one group."""
    await admin.call("sp_add_job", job_name=job)
    if not await admin.value(
        "select count(*) from jobs.target_groups where target_group_name = 'all'"
    ):
        await admin.call("sp_add_target_group", target_group_name="all")
    for name in names:
        await a_step(admin, name, job=job)


async def a_step(admin: Definer, name: str | None, *, job: str = "nightly", **more: Any) -> int:
    given = {"command": f"select '{name}'", "target_group_name": "all"} | more
    return await admin.call("sp_add_jobstep", job_name=job, step_name=name, **given)
