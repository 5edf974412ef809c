"""Every named query is prepared against a migrated database: a typo fails in a second."""

import importlib
import pkgutil

import pytest

from muster.core.sql import Queries

PACKAGES = ("api", "workflows", "fsm", "muster")


def queries() -> dict[str, str]:
    found: dict[str, str] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            if module.name.endswith("__main__"):
                continue
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Queries):
                    found |= {f"{value.source}: {name}": text for name, text in value.items()}
    return found


QUERIES = queries()


async def test_every_query_compiles(db):
    wrong = []
    async with db.connection() as connection:
        for name, text in QUERIES.items():
            try:
                await connection.prepare(text)
            except Exception as error:
                wrong.append(f"{name}: {error}")
    assert wrong == []


def test_the_walk_finds_them():
    assert {"fsm.sql: take_lease", "muster.core: wake"} <= set(QUERIES)
    assert len(QUERIES) > 30


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_every_query_makes_a_promise(name):
    assert QUERIES[name].startswith("-- ")
