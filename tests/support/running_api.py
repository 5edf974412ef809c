"""The API and a runner, really running, in a thread of their own: for clients that block."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import httpx

from api.server import make
from muster.core.settings import Secret, Settings
from muster.roles import api, fsm

TOKEN = "local-token-of-the-tests"
VERSION = {"api-version": "2025-01-01"}


@dataclass(frozen=True)
class Running:
    url: str
    settings: Settings

    def client(self, token: str = TOKEN, **more: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, params=VERSION, timeout=30, **more)


@contextlib.contextmanager
def serve_in_thread(settings: Settings, *also: ModuleType) -> Iterator[Running]:
    """`also`: roles that run beside API and FSM, such as the node agent and the launcher."""
    settings = replace(settings, listen="127.0.0.1:0", local_token=Secret(TOKEN))
    up = threading.Event()
    held: dict[str, Any] = {}

    async def main() -> None:
        stop = held["stop"] = asyncio.Event()
        held["loop"] = asyncio.get_running_loop()

        def ready(where: dict[str, Any]) -> None:
            held["url"] = where["url"]
            up.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(fsm.run(settings, stop, lambda _: None))
            for role in also:
                group.create_task(role.run(settings, stop, lambda _: None))
            group.create_task(api.run(settings, stop, ready))

    def thread() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            held["error"] = error
        finally:
            up.set()

    worker = threading.Thread(target=thread)
    worker.start()
    try:
        assert up.wait(30)
        if "error" in held:
            raise held["error"]
        yield Running(held["url"], settings)
    finally:
        if "loop" in held and worker.is_alive():
            held["loop"].call_soon_threadsafe(held["stop"].set)
        worker.join(60)
    assert not worker.is_alive()
    if "error" in held:
        raise held["error"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The app behind the server of production, in this event loop; its address."""
    listener = api.listen("127.0.0.1:0")
    server = make(app, None)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.up.wait()
        yield api.address(listener, tls=False)["url"]
    finally:
        server.should_exit = True
        await serving
