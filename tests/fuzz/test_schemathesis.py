"""schemathesis against the running server: no 5xx, no answer that the document does not know.

A fixed seed makes it repeatable. `make test` runs a short form; MUSTER_TEST_FUZZ=long, or a number
of examples per operation, runs all operations.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from api import openapi
from muster.core.settings import Settings
from muster.roles import api
from tests.support import actors, arm
from tests.support import postgres as target

HERE = Path(__file__).parent
SHORT = 2
LONG = 100
SEED = 20310101
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
    "use_after_free",
)
# In the short form the tenant stands for all scopes where a type can be found at every scope.
ALIKE = "At(Subscription|ResourceGroup|Server|Database|ElasticPool)$"


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """The real server in a thread of its own, so that the fuzzer's process can call it."""
    stop, up, told = asyncio.Event(), threading.Event(), {}

    def ready(address: dict[str, Any]) -> None:
        told.update(address, loop=asyncio.get_running_loop())
        up.set()

    settings = replace(arm.local(settings), listen="127.0.0.1:0")
    thread = threading.Thread(target=lambda: asyncio.run(api.run(settings, stop, ready)))
    thread.start()
    try:
        assert up.wait(20)
        yield told["url"]
    finally:
        told["loop"].call_soon_threadsafe(stop.set)
        thread.join(20)


async def fill(settings: Settings, url: str, fleet: target.Postgres) -> None:
    """Things that exist, on a server that answers."""
    headers = {"Authorization": f"Bearer {arm.TOKEN}"}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers) as call,
        arm.plane(settings) as plane,
    ):
        await arm.put(call, arm.SUBSCRIPTION, {})
        await arm.put(call, arm.GROUP, {"location": "local"})
        boss = fleet.administrator
        body = {
            "location": "local",
            "properties": {
                "administratorLogin": boss.name,
                "administratorLoginPassword": boss.password,
                "endpoint": {"host": fleet.host, "port": fleet.port, "sslMode": "disable"},
            },
        }
        await arm.put(call, arm.SERVER, body)
        async with plane.db.connection() as connection:
            await connection.execute(actors.SETTLE)
        await arm.put(call, f"{arm.SERVER}/databases/d1", {})
        await arm.put(call, f"{arm.SERVER}/elasticPools/p1", {})


def explicit() -> dict[str, Any]:
    """The document without its catch-all, so that every answer must be named."""
    document: dict[str, Any] = json.loads(openapi.rendered())
    for methods in document["paths"].values():
        for operation in methods.values():
            del operation["responses"]["default"]
    return document


@pytest.mark.timeout(3600)
def test_no_answer_surprises(settings: Settings, tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(explicit()))
    asked = os.environ.get("MUSTER_TEST_FUZZ")
    examples = SHORT if not asked else LONG if asked == "long" else int(asked)
    with target.running() as fleet, serving(settings) as url:
        asyncio.run(fill(settings, url, fleet))
        command = [
            Path(sys.executable).with_name("st"),
            f"--config-file={HERE / ('long.toml' if asked else 'short.toml')}",
            "run",
            document,
            f"--url={url}",
            f"--header=Authorization: Bearer {arm.TOKEN}",
            f"--seed={SEED}",
            f"--max-examples={examples}",
            f"--checks={','.join(CHECKS)}",
            "--continue-on-failure",
            "--no-color",
            "--warnings=off",
            "--request-timeout=20",
            "--suppress-health-check=all",
        ]
        if not asked:
            command.append(f"--exclude-operation-id-regex={ALIKE}")
        environ = os.environ | {
            "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
            "PYTHONPATH": str(HERE.parent.parent),
        }
        run = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    print(run.stdout[-6000:])
    assert run.returncode == 0, run.stdout[-20000:] + run.stderr[-2000:]
