"""The command line against an API in this process.

muster = bridge(jobs_api, monkeypatch, capsys)
await muster("job", "list")               what it printed; fails when it did not exit with 0
await muster("job", "show", "no", code=6)
await muster.json("job", "show", "nightly")
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from muster.cli import client
from tests.support import arm
from tests.support.command_line import CommandLine
from tests.support.jobs_fixture import ACCOUNT, JobsApi


class Transport(httpx.BaseTransport):
    """Hands the requests of a blocking client to the client of the event loop."""

    def __init__(self, call: httpx.AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self.call = call
        self.loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run_coroutine_threadsafe(self._answer(request), self.loop).result(60)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        headers = {**request.headers, **self.call.headers}
        answer = await self.call.request(
            request.method, request.url, headers=headers, content=request.read()
        )
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


class Muster:
    def __init__(self, command_line: CommandLine) -> None:
        self._command_line = command_line

    async def __call__(self, *words: str, code: int = 0) -> str:
        return await asyncio.to_thread(self._command_line, *words, code=code)

    async def json(self, *words: str) -> Any:
        return await asyncio.to_thread(self._command_line.json, *words)

    async def rows(self, *words: str) -> list[dict[str, str]]:
        return await asyncio.to_thread(self._command_line.rows, *words)


def bridge(
    jobs_api: JobsApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Muster:
    loop, call = asyncio.get_running_loop(), jobs_api.call
    url = f"http://{arm.HOST}"
    command_line = CommandLine(monkeypatch, capsys, url, "replaced by the transport")
    monkeypatch.setenv("MUSTER_ACCOUNT", ACCOUNT)

    def connect(_url: str, _token: str, _ca_file: Path | None) -> httpx.Client:
        return httpx.Client(base_url=call.base_url, transport=Transport(call, loop))

    monkeypatch.setattr(client, "connect", connect)
    return Muster(command_line)
