"""`muster demo`: starts everything in a directory of its own, makes a server, databases and a job account.

On a terminal it stays up until Enter or Ctrl-C; without one it stops by itself and leaves no process.
"""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

API = {"api-version": "2025-01-01"}
START_LIMIT = 120.0
SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-00000000d340"
SERVER = SUBSCRIPTION + "/resourceGroups/demo/providers/Microsoft.Sql/servers/demo-server"


def run(data_dir: Path) -> int:
    data_dir = data_dir.resolve()
    data_dir.mkdir(parents=True, exist_ok=True)
    ready = data_dir / "ready.json"
    command = [
        "up",
        "--data-dir",
        str(data_dir),
        "--listen",
        "127.0.0.1:0",
        "--ready-file",
        str(ready),
    ]
    ready.unlink(missing_ok=True)
    print("Starting Muster (the first start makes a PostgreSQL cluster) …", flush=True)
    up = subprocess.Popen([sys.executable, "-P", "-m", "muster", *command])  # noqa: S603 - ourselves
    try:
        where = _wait(up, ready)
        _tour(where)
        if sys.stdin.isatty() and sys.stdout.isatty():
            print(f"\nIt stays up at {where['url']}; the token is in {ready}. Enter stops it.")
            with contextlib.suppress(KeyboardInterrupt, EOFError):
                input()
    finally:
        up.send_signal(signal.SIGTERM)
        code = up.wait(timeout=30)
    print("\nDone: everything is stopped, the data is kept in", data_dir)
    return code


def _wait(up: "subprocess.Popen[bytes]", ready: Path) -> dict[str, Any]:
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if up.poll() is not None:
            raise SystemExit(up.returncode or 1)
        if ready.exists():
            found: dict[str, Any] = json.loads(ready.read_text(encoding="utf-8"))
            return found
        time.sleep(0.1)
    raise SystemExit(f"Muster did not become ready within {START_LIMIT:.0f} s; see the logs.")


def _tour(where: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {where['token']}"}
    with httpx.Client(base_url=where["url"], headers=headers, params=API, timeout=30) as api:
        print(f"\nControl plane up at {where['url']}")
        _put(api, SUBSCRIPTION, {"displayName": "Demo"})
        _put(api, SUBSCRIPTION + "/resourceGroups/demo", {"location": "local"})
        login = {
            "administratorLogin": "fleet_admin",
            "administratorLoginPassword": "demo-password-1",
        }
        _put(api, SERVER, {"location": "local", "properties": login})
        for name in ("tenant_ada", "tenant_bob", "tenant_eve", "jobs"):
            _put(api, f"{SERVER}/databases/{name}", {"location": "local"})
        control = {"databaseId": f"{SERVER}/databases/jobs"}
        _put(api, f"{SERVER}/jobAgents/nightly", {"location": "local", "properties": control})
        server = api.get(SERVER).raise_for_status().json()["properties"]
        at = server["endpoint"]
        print(
            f"\nServer demo-server: {server['state']}, PostgreSQL {server['serverVersion']} on {at['host']}:{at['port']}"
        )
        for database in api.get(SERVER + "/databases").raise_for_status().json()["value"]:
            print(f"  {database['name']:<12} {database['properties']['status']}")
        account = api.get(SERVER + "/jobAgents/nightly").raise_for_status().json()["properties"]
        engine = account["instance"]
        print(
            f"Job account nightly: {account['state']}, engine {engine['version']} on {engine['host']}"
        )


def _put(api: httpx.Client, path: str, body: dict[str, Any]) -> None:
    """PUT, then follow the operation to its end."""
    began = time.monotonic()
    answer = api.put(path, json=body)
    if answer.is_error:
        raise SystemExit(f"PUT {path}: {answer.status_code} {answer.text}")
    operation = answer.headers.get("Azure-AsyncOperation")
    status = "Succeeded"
    while operation:
        shown = api.get(operation, params={}).raise_for_status().json()
        status = shown["status"]
        if status in {"Failed", "Canceled"}:
            raise SystemExit(f"PUT {path}: {shown['error']}")
        if status == "Succeeded" or time.monotonic() - began > START_LIMIT:
            break
        time.sleep(0.2)
    print(
        f"  PUT {path.rsplit('/', 1)[-1]:<40} {answer.status_code} {status} ({time.monotonic() - began:.1f} s)",
        flush=True,
    )
