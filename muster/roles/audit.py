"""`muster audit verify`: whether the audit is what was written, checked against the metadata database itself.

The database refuses changes by the role of the processes. A superuser or the owner of the tables
can change rows all the same; this finds it, as long as that one did not compute a whole chain again.
Against that, heads that were printed earlier and kept elsewhere are compared.
"""

import asyncio
import sys
from pathlib import Path

from muster.core.db import Database, open_database
from muster.core.errors import Fault, InvalidRequest
from muster.core.settings import Settings
from muster.core.sql import Queries

Q = Queries("muster.roles.sql", "audit.sql")

Head = tuple[str, int, str]  # chain, number of its last event, hash


def main(settings: Settings, heads_file: Path | None) -> int:
    """0: nothing was changed; prints the heads of the chains, to be kept elsewhere."""
    try:
        earlier = read_heads(heads_file) if heads_file else []
        problems, heads = asyncio.run(_verify(settings, earlier))
    except (Fault, OSError) as error:
        print(f"muster audit: {error}", file=sys.stderr)
        return 1
    for chain, seq, digest in heads:
        print(f"{chain}\t{seq}\t{digest}")
    for problem in problems:
        print(f"muster audit: {problem}", file=sys.stderr)
    return 1 if problems else 0


def read_heads(path: Path) -> list[Head]:
    """Lines as `muster audit verify` prints them."""
    heads = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        chain, tab, rest = line.partition("\t")
        seq, _, digest = rest.partition("\t")
        if not (tab and seq.isascii() and seq.isdigit() and len(digest) == 64):
            raise InvalidRequest(
                f"{path}: line {number} is not what `muster audit verify` prints: chain, number and "
                "hash, separated by tabs."
            )
        heads.append((chain, int(seq), digest))
    return heads


async def _verify(settings: Settings, earlier: list[Head]) -> tuple[list[str], list[Head]]:
    database = await open_database(settings, application="muster-audit")
    try:
        return await verify(database, earlier)
    finally:
        await database.close()


async def verify(database: Database, earlier: list[Head]) -> tuple[list[str], list[Head]]:
    """What does not fit, in words, and the heads of all chains."""
    async with database.connection() as connection:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute("set local statement_timeout = 0")
            broken = await connection.fetch(Q.check_chains)
            problems = [
                _shown(row["chain"], row["seq"], row["event_id"], row["problem"]) for row in broken
            ]
            for chain, seq, digest in earlier:
                row = await connection.fetchrow(Q.hash_at, chain, seq)
                if row is None or not (row["removed"] or (row["hash"] or b"").hex() == digest):
                    problems.append(_shown(chain, seq, None, "its hash differs from the kept one"))
            heads = await connection.fetch(Q.list_heads)
    return problems, [(row["chain"], row["seq"], row["hash"].hex()) for row in heads]


def _shown(chain: str | None, seq: int | None, event: int | None, problem: str) -> str:
    place = f"chain '{chain or '?'}'" + (f", number {seq}" if seq is not None else "")
    return f"{place}{f', event {event}' if event is not None else ''}: {problem}"
