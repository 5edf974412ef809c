"""Forward-only migrations: each file once, under an advisory lock, with a ledger of digests.

Beside them stand replaceable files (functions, views): applied again whenever their text changed.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable

from muster.core.db import Connection
from muster.core.errors import Internal

LOCK = 0x6D757374  # "must"
PHASE = re.compile(r"-- (expand|contract): \S")

LEDGER = """
create table if not exists {ledger} (
    name       text primary key,
    digest     text not null,
    applied_at timestamptz not null default clock_timestamp()
)
"""
RECORD = """
insert into {ledger} (name, digest) select * from unnest($1::text[], $2::text[])
on conflict (name) do update set digest = excluded.digest, applied_at = clock_timestamp()
"""


async def migrate(connection: Connection, package: str, *, ledger: str = "migration") -> list[str]:
    """Applies what is missing; refuses a file that changed after it was applied.

    Inside a transaction of the caller everything, the lock too, belongs to that transaction.
    """
    if connection.is_in_transaction():
        await connection.execute("select pg_advisory_xact_lock($1)", LOCK)
        return await _apply(connection, package, ledger)
    await connection.execute("set statement_timeout = 0; set lock_timeout = 0")
    await connection.execute("select pg_advisory_lock($1)", LOCK)
    try:
        return await _apply(connection, package, ledger)
    finally:
        await connection.execute("select pg_advisory_unlock($1)", LOCK)


async def refresh(
    connection: Connection,
    packages: Sequence[str],
    *,
    ledger: str,
    every: bool = False,
    rewrite: Callable[[str], str] = str,
) -> list[str]:
    """Applies the replaceable files that changed, or `every` one; after `migrate`, under its lock."""
    checksums = await _known(connection, ledger)
    changed = [
        (name, digest, text)
        for package in packages
        for file, text in ((file, rewrite(text)) for file, text in files(package))
        if checksums.get(name := f"{package}/{file}") != (digest := _digest(text)) or every
    ]
    names = [name for name, _, _ in changed]
    if not changed:
        return names
    async with connection.transaction():
        # Together: there are hundreds, and a round trip for each would take longer than the work.
        await connection.execute("\n".join(text for _, _, text in changed))
        digests = [digest for _, digest, _ in changed]
        await connection.execute(RECORD.format(ledger=ledger), names, digests)
    return names


async def _apply(connection: Connection, package: str, ledger: str) -> list[str]:
    applied: list[str] = []
    await connection.execute(LEDGER.format(ledger=ledger))
    checksums = await _known(connection, ledger)
    for name, text in scripts(package):
        digest = _digest(text)
        if checksums.get(name, digest) != digest:
            raise Internal(f"migration {name} was edited after it had been applied")
        if name not in checksums:
            async with connection.transaction():
                await connection.execute(text)
                await connection.execute(RECORD.format(ledger=ledger), [name], [digest])
            applied.append(name)
    return applied


async def _known(connection: Connection, ledger: str) -> dict[str, str]:
    rows = await connection.fetch(f"select name, digest from {ledger}")  # noqa: S608 - our own name
    return {row["name"]: row["digest"] for row in rows}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def scripts(package: str) -> list[tuple[str, str]]:
    """In order; each says its phase in the first line and numbers have no gap."""
    entries = files(package)
    for number, (name, text) in enumerate(entries, start=1):
        if not name.startswith(f"{number:04}_") or not PHASE.match(text):
            raise Internal(
                f"migration {name}: expected number {number:04} and a first line -- expand|contract: why"
            )
    return entries


def files(package: str) -> list[tuple[str, str]]:
    """In the order of their names, which are unique; folders only group them."""
    entries = sorted(_inside(resources.files(package)))
    if len({name for name, _ in entries}) < len(entries):
        raise Internal(f"{package}: two files have the same name")
    return entries


def _inside(folder: Traversable) -> Iterator[tuple[str, str]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _inside(each)
        elif each.name.endswith(".sql"):
            yield each.name, each.read_text(encoding="utf-8")
