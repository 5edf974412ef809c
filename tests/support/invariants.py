"""Asks the database whether anything that must never be has come to be."""

from collections.abc import Iterable
from uuid import UUID

from fsm.lifecycles import LIFECYCLES
from muster.core.db import Database
from muster.core.sql import Queries

INVARIANTS = Queries("tests.chaos", "invariants.sql")


def edges() -> list[str]:
    return [
        f"{name}/{source}/{to}"
        for name, table in LIFECYCLES.items()
        for source, _, to in table.edges()
    ]


async def violations(db: Database, acked: Iterable[UUID] = ()) -> list[str]:
    found = []
    for name, query in INVARIANTS.items():
        arguments = {"I01": [list(acked)], "I05": [edges()]}.get(name[:3], [])
        found += [f"{name}: {row['what']}" for row in await db.fetch(query, *arguments)]
    return found
