"""get-job: GET of a job through all layers in separate processes, beside two bare services in a chain."""

import asyncio
import json
import os
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
from bench.report import compare, print_line, summary
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
            print_line(asyncio.run(measure_sides(stack, path, front, back)))


async def a_row(stack: Stack, document: dict[str, Any]) -> str:
    """Puts the same document into a table of the control database; returns the URL of the database."""
    endpoint = stack.get(SERVER)["properties"]["endpoint"]
    user, password = LOGIN["administratorLogin"], LOGIN["administratorLoginPassword"]
    address = f"{endpoint['host']}:{endpoint['port']}"
    url = f"postgresql://{user}:{password.replace(' ', '%20')}@{address}/jobs_bench"
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


async def measure_sides(stack: Stack, path: str, front: int, back: int) -> dict[str, Any]:
    address = httpx.URL(stack.url)
    auth = f"Authorization: Bearer {stack.token}\r\n"
    sides = {
        "ours": (address.port, request("GET", f"{path}?api-version=2025-01-01", auth)),
        "limit": (front, request("GET", "/one?key=nightly")),
        "read": (back, request("GET", "/one?key=nightly")),
    }
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, (port, content) in sides.items():
            rate = await measure(
                "127.0.0.1",
                port,
                lambda _, content=content: content,
                connections=CONNECTIONS,
                seconds=SECONDS,
            )
            rounds[name].append(rate)
    to_read, to_read_range = compare(rounds["ours"], rounds["read"])
    return summary(
        "get-job",
        rounds,
        digits=None,
        ratio_to_one_bare_read=to_read,
        ratio_to_one_bare_read_range=to_read_range,
        goal=0.6,
        note=f"requests/s; {CONNECTIONS} connections; authorization and limiter on, limits raised",
    )
