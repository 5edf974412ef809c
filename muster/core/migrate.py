"""Forward-only migrations: each file once, under an advisory lock, with a ledger of digests."""

import hashlib
import re
from importlib import resources

from muster.core.db import Connection
from muster.core.errors import Internal

LOCK = 0x6D757374  # "must"
PHASE = re.compile(r"-- (expand|contract): \S")

LEDGER = """
create table if not exists migration (
    name       text primary key,
    digest     text not null,
    applied_at timestamptz not null default clock_timestamp()
)
"""


async def migrate(connection: Connection, package: str) -> list[str]:
    """Applies what is missing; refuses a file that changed after it was applied."""
    applied: list[str] = []
    await connection.execute("set statement_timeout = 0; set lock_timeout = 0")
    await connection.execute("select pg_advisory_lock($1)", LOCK)
    try:
        await connection.execute(LEDGER)
        known = {r["name"]: r["digest"] for r in await connection.fetch("select * from migration")}
        for name, text in scripts(package):
            digest = hashlib.sha256(text.encode()).hexdigest()
            if known.get(name, digest) != digest:
                raise Internal(f"migration {name} was edited after it had been applied")
            if name not in known:
                async with connection.transaction():
                    await connection.execute(text)
                    await connection.execute(
                        "insert into migration (name, digest) values ($1, $2)", name, digest
                    )
                applied.append(name)
    finally:
        await connection.execute("select pg_advisory_unlock($1)", LOCK)
    return applied


def scripts(package: str) -> list[tuple[str, str]]:
    """In order; each says its phase in the first line and numbers have no gap."""
    found = sorted(
        (file.name, file.read_text(encoding="utf-8"))
        for file in resources.files(package).iterdir()
        if file.name.endswith(".sql")
    )
    for number, (name, text) in enumerate(found, start=1):
        if not name.startswith(f"{number:04}_") or not PHASE.match(text):
            raise Internal(
                f"migration {name}: expected number {number:04} and a first line -- expand|contract: why"
            )
    return found
