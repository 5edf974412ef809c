"""Embedded clusters that are databases of one shared server; passes the tests of the real ones."""

from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from fsm.clusters import T
from muster.core.errors import Unavailable
from muster.core.scram import verifier
from muster.core.settings import Secret
from tests.support.postgres import Postgres, drop


@dataclass
class FakeClusters:
    """What it remembers stands for a disk: it outlives a crash of the runner."""

    server: Postgres
    made: set[UUID] = field(default_factory=set)
    up: set[UUID] = field(default_factory=set)
    logins: dict[UUID, set[str]] = field(default_factory=dict)

    async def create(self, uid: UUID) -> None:
        self.made.add(uid)

    async def start(self, uid: UUID) -> int:
        if uid not in self.made:
            raise Unavailable("There is no such cluster.")
        self.up.add(uid)
        return self.server.port

    async def set_administrator(self, uid: UUID, login: str, password: Secret) -> None:
        await self.start(uid)
        connection = await asyncpg.connect(self.server.url("postgres", self.server.root))
        try:
            known = await connection.fetchval(T.role_exists, login)
            statement = await connection.fetchval(T.administrator, login, verifier(password), known)
            await connection.execute(statement)
        finally:
            await connection.close()
        self.logins.setdefault(uid, set()).add(login)

    async def running(self, uid: UUID) -> bool:
        return uid in self.up

    async def stop(self, uid: UUID) -> None:
        self.up.discard(uid)

    async def destroy(self, uid: UUID) -> None:
        """Everything in a cluster goes with it."""
        self.up.discard(uid)
        connection = await asyncpg.connect(self.server.url("postgres", self.server.root))
        try:
            for login in self.logins.pop(uid, set()):
                owned = await connection.fetch(
                    "select datname from pg_database where pg_get_userbyid(datdba) = $1", login
                )
                for row in owned:
                    await drop(connection, row["datname"])
                await connection.execute(f'drop role "{login}"')
        finally:
            await connection.close()
        self.made.discard(uid)

    def known(self) -> list[UUID]:
        return sorted(self.made)
