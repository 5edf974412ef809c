"""The embedded clusters in the data directory, one folder per server, named by its uid."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from fsm.administrator import APPLICATION, told_as_faults
from muster.core.address_source import embedded
from muster.core.cluster import HOST, Cluster, State
from muster.core.connect import Connector, Endpoint
from muster.core.scram import verifier
from muster.core.settings import Secret, Settings
from muster.core.sql import Queries

T = Queries("fsm.sql", "target.sql")


@dataclass(frozen=True)
class EmbeddedClusters:
    folder: Path
    settings: Settings

    async def create(self, uid: UUID) -> None:
        await self._at(uid).create()

    async def start(self, uid: UUID) -> int:
        return await self._at(uid).start()

    async def set_administrator(self, uid: UUID, login: str, password: Secret) -> None:
        """The superuser's only errand: a plain administrator, new or with a new password."""
        cluster = self._at(uid)
        port = await cluster.start()
        url = urlsplit(cluster.superuser_url().reveal())
        connector = Connector(self.settings, embedded((HOST, port)))
        with told_as_faults():
            async with connector.session(
                Endpoint(host=HOST, port=port, ssl_mode="disable"),
                user=url.username or "",
                password=Secret(url.password or ""),
                application_name=APPLICATION,
            ) as connection:
                exists = await connection.fetchval(T.role_exists, login)
                statement = await connection.fetchval(
                    T.administrator, login, verifier(password), exists
                )
                await connection.execute(statement)

    async def running(self, uid: UUID) -> bool:
        return (await self._at(uid).status()).state is State.RUNNING

    async def stop(self, uid: UUID) -> None:
        await self._at(uid).stop()

    async def destroy(self, uid: UUID) -> None:
        await self._at(uid).destroy()

    def known(self) -> list[UUID]:
        """Folders that are no uid are not ours to judge."""
        if not self.folder.is_dir():
            return []
        return [uid for entry in sorted(self.folder.iterdir()) if (uid := _uid(entry.name))]

    def _at(self, uid: UUID) -> Cluster:
        return Cluster(self.folder / str(uid))


def _uid(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None
