"""api: GET by id, PUT and list through all layers, beside a bare handler that sends the same SQL."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from bench.load import measure
from bench.report import compare, print_line, summary

ROUNDS = 3
SECONDS = float(os.environ.get("MUSTER_BENCH_SECONDS", "4"))
CONNECTIONS = 16
GROUP = "/subscriptions/bench/resourceGroups/g"
SERVER = GROUP + "/providers/Microsoft.Sql/servers/bench"
VERSION = "api-version=2025-01-01"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        asyncio.run(bench(Path(folder)))


async def bench(folder: Path) -> None:
    environ = os.environ | {
        "MUSTER_THROTTLE": "on",
        "MUSTER_THROTTLE_READS": "1000000000",
        "MUSTER_THROTTLE_WRITES": "1000000000",
    }
    up = start(
        [
            "-m",
            "muster",
            "up",
            "--data-dir",
            str(folder / "data"),
            "--listen",
            "127.0.0.1:0",
            "--ready-file",
            str(folder / "ready.json"),
        ],
        environ,
    )
    bare = None
    try:
        ours = await ready(up, folder / "ready.json")
        port = free_port()
        bare = start(
            [str(Path(__file__).with_name("bare.py")), ours["database_url"], str(port)],
            os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
        )
        await fill(ours)
        await answers(f"http://127.0.0.1:{port}/all?key={SERVER.lower()}")
        print_line(await measure_cases(ours, port))
    finally:
        for process in (bare, up):
            if process:
                process.terminate()
                process.wait(20)


def start(arguments: list[str], environ: dict) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-P", *arguments], env=environ, stdout=subprocess.DEVNULL
    )


async def ready(up: subprocess.Popen, file: Path) -> dict:
    for _ in range(600):
        if file.exists():
            return json.loads(file.read_text())
        if up.poll() is not None:
            raise SystemExit("muster up ended")
        await asyncio.sleep(0.1)
    raise SystemExit("muster up was not ready in time")


async def answers(url: str) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(100):
            try:
                (await client.get(url)).raise_for_status()
            except httpx.TransportError:
                await asyncio.sleep(0.1)
            else:
                return
    raise SystemExit(f"{url} does not answer")


async def fill(ours: dict) -> None:
    """A group, a server and a hundred pools on it."""
    headers = {"Authorization": f"Bearer {ours['token']}"}
    login = {"administratorLogin": "bench_admin", "administratorLoginPassword": "bench-password"}
    async with httpx.AsyncClient(base_url=ours["url"], headers=headers, timeout=60) as client:

        async def put(path: str, body: dict) -> None:
            (await client.put(f"{path}?{VERSION}", json=body)).raise_for_status()

        await put("/subscriptions/bench", {})
        await put(GROUP, {"location": "local"})
        for n in range(CONNECTIONS):
            await put(group(n * 1_000_000), {"location": "local"})
        await put(SERVER, {"location": "local", "properties": login})
        for _ in range(600):
            resource = (await client.get(f"{SERVER}?{VERSION}")).json()
            if resource["properties"]["provisioningState"] == "Succeeded":
                break
            await asyncio.sleep(0.1)
        for n in range(100):
            await put(f"{SERVER}/elasticPools/pool-{n:03}", {"location": "local"})


async def measure_cases(ours: dict, port: int) -> dict:
    address = httpx.URL(ours["url"])
    auth = f"Authorization: Bearer {ours['token']}\r\n"
    cases = {
        "get": (
            lambda _: request("GET", f"{SERVER}?{VERSION}", auth),
            lambda _: request("GET", f"/one?key={SERVER.lower()}"),
        ),
        "put": (
            lambda n: request(
                "PUT", f"{group(n)}?{VERSION}", auth, {"location": "local", "tags": {"n": str(n)}}
            ),
            lambda n: request(
                "PUT",
                f"/one?key={group(n).lower()}&above=/subscriptions/bench",
                "",
                {"tags": {"n": str(n)}},
            ),
        ),
        "list": (
            lambda _: request("GET", f"{SERVER}/elasticPools?{VERSION}", auth),
            lambda _: request("GET", f"/all?key={SERVER.lower()}"),
        ),
    }
    rounds: dict[str, dict[str, list[float]]] = {name: {"ours": [], "limit": []} for name in cases}
    for _ in range(ROUNDS):
        for name, (our_request, bare_request) in cases.items():
            rounds[name]["ours"].append(
                await measure(
                    address.host,
                    address.port,
                    our_request,
                    connections=CONNECTIONS,
                    seconds=SECONDS,
                )
            )
            rounds[name]["limit"].append(
                await measure(
                    "127.0.0.1", port, bare_request, connections=CONNECTIONS, seconds=SECONDS
                )
            )
    return report(rounds)


def group(n: int) -> str:
    """Each connection writes a group of its own."""
    return f"{GROUP}{n // 1_000_000}"


def report(rounds: dict[str, dict[str, list[float]]]) -> dict:
    """The values are those of GET by id; `ratios` and `ratio_ranges` have every case."""
    ratios = {name: compare(sides["ours"], sides["limit"]) for name, sides in rounds.items()}
    return summary(
        "api",
        rounds["get"],
        digits=None,
        ratios={name: ratio for name, (ratio, _) in ratios.items()},
        ratio_ranges={name: values for name, (_, values) in ratios.items()},
        goal=0.6,
        at=time.strftime("%Y-%m-%d"),
        note=f"requests/s of GET by id; {CONNECTIONS} connections; limiter on with raised limits",
    )


def request(method: str, target: str, extra: str = "", body: dict | None = None) -> bytes:
    content = json.dumps(body).encode() if body is not None else b""
    kind = (
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        if body is not None
        else ""
    )
    return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{extra}{kind}\r\n".encode() + content


def free_port() -> int:
    import socket

    for port in range(21000, 21999):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise SystemExit("no free port")
