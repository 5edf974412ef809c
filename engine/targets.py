"""How the engine reaches servers: by the directory, with credentials opened here and nowhere else."""

import asyncio
from collections.abc import Iterable

from engine.bootstrap import Bootstrap
from engine.credentials import Credentials
from engine.directory import Document, Server
from engine.listing import Listing
from muster.core.clock import Clock
from muster.core.connect import Connector


class Targets:
    def __init__(self, bootstrap: Bootstrap, clock: Clock) -> None:
        self._settings = bootstrap.settings()
        self.credentials = Credentials.of(bootstrap, clock)
        self._doors: dict[str, asyncio.Lock] = {}

    def door(self, server_id: str) -> asyncio.Lock:
        """To the one session that each server spares us, for looking and ending."""
        return self._doors.setdefault(server_id.lower(), asyncio.Lock())

    def listing(self, document: Document) -> Listing:
        return Listing(
            self.connector(document.directory.servers),
            self.credentials,
            document.identity,
            self.door,
        )

    def connector(self, servers: Iterable[Server]) -> Connector:
        return Connector(self._settings, frozenset().union(*(each.own for each in servers)))
