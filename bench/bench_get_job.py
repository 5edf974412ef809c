"""get-job: GET of a job through all layers in separate processes, beside two bare services in a chain."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from bench.bench_api import answers, free_port, request
from bench.load import measure
from tests.support.stack import LOGIN, SERVER, Stack, a_server, an_account, muster_up

ROUNDS = 3
SECONDS = float(os.environ.get("MUSTER_BENCH_SECONDS", "4"))
CONNECTIONS = 16
CHAIN = Path(__file__).with_name("chain.py")
LIMITS = {
    "MUSTER_THROTTLE": "on",
    "MUSTER_THROTTLE_READS": "1000000000",
    "MUSTER_THROTTLE_WRITES": "1000000000",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with muster_up(Path(folder), **LIMITS) as stack, ExitStack() as closing:
            a_server(stack)
            path = f"{an_account(stack, 'bench')}/jobs/nightly"
            body = {"properties": {"description": "Every night."}}
            document = stack.put(path, body).json()
            url = asyncio.run(a_row(stack, document))
            back, front = free_port(), 0
            closing.enter_context(service("back", back, url))
            asyncio.run(answers(f"http://127.0.0.1:{back}/one?key=nightly"))
            front = free_port()
            closing.enter_context(service("front", front, f"http://127.0.0.1:{back}"))
            asyncio.run(answers(f"http://127.0.0.1:{front}/one?key=nightly"))
            print(json.dumps(asyncio.run(rounds(stack, path, front, back))), flush=True)


async def a_row(stack: Stack, document: dict[str, Any]) -> str:
    """The same document in a table of its own, in the control database; how to get there."""
    endpoint = stack.get(SERVER)["properties"]["endpoint"]
    user, password = LOGIN["administratorLogin"], LOGIN["administratorLoginPassword"]
    place = f"{endpoint['host']}:{endpoint['port']}/jobs_bench"
    url = f"postgresql://{user}:{password.replace(' ', '%20')}@{place}"
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("create table bench_row (key text primary key, doc jsonb)")
        await connection.execute(
            "insert into bench_row values ('nightly', $1::text::jsonb)", json.dumps(document)
        )
    finally:
        await connection.close()
    return url


@contextmanager
def service(side: str, port: int, url: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-P", str(CHAIN), side, str(port), url])
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


async def rounds(stack: Stack, path: str, front: int, back: int) -> dict[str, Any]:
    address = httpx.URL(stack.url)
    auth = f"Authorization: Bearer {stack.token}\r\n"
    sides = {
        "ours": (address.port, request("GET", f"{path}?api-version=2025-01-01", auth)),
        "limit": (front, request("GET", "/one?key=nightly")),
        "read": (back, request("GET", "/one?key=nightly")),
    }
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, (port, asked) in sides.items():
            rate = await measure(
                "127.0.0.1", port, lambda _, a=asked: a, connections=CONNECTIONS, seconds=SECONDS
            )
            found[name].append(rate)
    medians = {name: statistics.median(values) for name, values in found.items()}
    return {
        "name": "get-job",
        "ours": round(medians["ours"]),
        "limit": round(medians["limit"]),
        "peer": None,
        "ratio": round(medians["ours"] / medians["limit"], 2),
        "spread": {name: [round(value) for value in values] for name, values in found.items()},
        "ratio_to_one_bare_read": round(medians["ours"] / medians["read"], 2),
        "goal": 0.6,
        "note": f"requests/s; {CONNECTIONS} connections; authorization and limiter on, limits raised",
    }
