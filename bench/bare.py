"""The limit of `bench api`: a bare litestar handler that sends the same SQL and nothing else."""

import sys

import asyncpg
import uvicorn
from litestar import Litestar, Request, Response, get, put
from litestar.datastructures import State

from muster.core.db import SERVER_SETTINGS, Session, prepare
from muster.core.settings import Settings
from workflows.store.resources import Q

TENANT = Settings.tenant_id
FIELDS = ("id", "name", "type", "location", "tags", "properties")


def app(url: str) -> Litestar:
    async def start(app: Litestar) -> None:
        app.state.pool = await asyncpg.create_pool(
            url,
            min_size=10,
            max_size=10,
            init=prepare,
            connection_class=Session,
            server_settings=SERVER_SETTINGS,
        )

    return Litestar([read, write, read_all], on_startup=[start], openapi_config=None)


def document(row: asyncpg.Record) -> dict:
    return {name: row[name] for name in FIELDS} | {"etag": str(row["row_version"])}


@get("/one")
async def read(state: State, request: Request) -> Response:
    row = await state.pool.fetchrow(Q.get_resource, request.query_params["key"], TENANT)
    return Response(document(row))


@get("/all")
async def read_all(state: State, request: Request) -> Response:
    rows = await state.pool.fetch(
        Q.list_children,
        request.query_params["key"],
        "Microsoft.Sql/servers/elasticPools",
        "",
        101,
        None,
    )
    return Response({"value": [document(row) for row in rows]})


@put("/one")
async def write(state: State, request: Request) -> Response:
    """The statements of one use case, in one transaction: ancestors, lock, update, audit."""
    key, above = request.query_params["key"], request.query_params["above"]
    body = await request.json()
    async with state.pool.acquire() as connection, connection.transaction():
        await connection.fetch(Q.get_resources, [key, above, "/"], TENANT)
        old = await connection.fetchrow(Q.lock_resource, key, TENANT)
        row = await connection.fetchrow(
            Q.update_resource,
            old["uid"],
            old["id"],
            old["name"],
            old["location"],
            body["tags"],
            None,
            None,
            None,
            {},
            {},
            {},
            "Succeeded",
            "bench",
            "User",
        )
        await connection.execute(
            Q.write_audit,
            "t",
            "s",
            None,
            old["id"],
            "x/write",
            "Succeeded",
            "bench",
            "User",
            "bench",
            None,
            "",
            "c",
            "r",
            None,
            {},
        )
    return Response(document(row))


if __name__ == "__main__":
    uvicorn.run(
        app(sys.argv[1]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        log_level="error",
        loop="uvloop",
        http="httptools",
        access_log=False,
    )
