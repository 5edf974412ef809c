"""The limit of `bench get-job`: two bare litestar services in a chain; the second reads by primary key.

python chain.py front PORT BACK_URL        asks the back service by httpx, as Muster asks its node agent
python chain.py back PORT DATABASE_URL     reads one row
"""

import sys
from typing import Any

import asyncpg
import httpx
import uvicorn
from litestar import Litestar, Request, Response, get, post
from litestar.datastructures import State

READ = "select doc::text from bench_row where key = $1"
JSON = "application/json"


@get("/one")
async def front(state: State, request: Request[Any, Any, Any]) -> Response[bytes]:
    body = {"key": request.query_params["key"]}
    answer = await state.client.post(f"{state.url}/one", json=body)
    return Response(answer.content, media_type=JSON)


@post("/one", status_code=200)
async def back(state: State, request: Request[Any, Any, Any]) -> Response[str]:
    key = (await request.json())["key"]
    return Response(await state.pool.fetchval(READ, key), media_type=JSON)


@get("/one")
async def alone(state: State, request: Request[Any, Any, Any]) -> Response[str]:
    text = await state.pool.fetchval(READ, request.query_params["key"])
    return Response(text, media_type=JSON)


def app(side: str, url: str) -> Litestar:
    async def start(app: Litestar) -> None:
        app.state.url = url
        if side == "front":
            app.state.client = httpx.AsyncClient(trust_env=False)
        else:
            app.state.pool = await asyncpg.create_pool(url, min_size=4, max_size=10)

    handlers = [front] if side == "front" else [back, alone]
    return Litestar(handlers, on_startup=[start], openapi_config=None, logging_config=None)


if __name__ == "__main__":
    uvicorn.run(
        app(sys.argv[1], sys.argv[3]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        log_level="error",
        loop="uvloop",
        http="httptools",
        access_log=False,
    )
