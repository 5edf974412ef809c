"""A PostgreSQL that stands for a reader's own server, and Muster as a reader starts it."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from tests.support import postgres
from tests.support.stack import Stack, muster_up

PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class OwnServer:
    """With an account `deploy` that may log in to its databases."""

    server: postgres.Postgres

    @property
    def arguments(self) -> str:
        return f"--host {self.server.host} --port {self.server.port} --ssl-mode disable"

    @property
    def allowed(self) -> str:
        return f"{self.server.host}:{self.server.port}"

    def query(self, database: str, *statements: str) -> list[asyncpg.Record]:
        async def ask() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(self.server.url(database, self.server.root))
            try:
                rows = [await connection.fetch(each) for each in statements]
                return rows[-1]
            finally:
                await connection.close()

        return asyncio.run(ask())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Dozens of commands one after another, each a process of its own."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(900))


def access(muster: Stack, account: str = "") -> dict[str, str]:
    """How a reader's shell reaches it."""
    own = {"MUSTER_URL": muster.url, "MUSTER_TOKEN": muster.token}
    return own | ({"MUSTER_ACCOUNT": account} if account else {})


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    with postgres.running(migrated=False) as server:
        made = OwnServer(server)
        made.query("postgres", f"create role deploy login password '{PASSWORD}'")
        yield made


@pytest.fixture
def muster(tmp_path, own_server) -> Iterator[Stack]:
    with muster_up(tmp_path, MUSTER_TARGET_ALLOW=own_server.allowed) as stack:
        yield stack
