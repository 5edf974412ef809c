"""Watches that no session of ours holds a transaction open without doing anything."""

import asyncio
import contextlib

import asyncpg

IDLE = """
select max(extract(epoch from clock_timestamp() - state_change))::float8
  from pg_stat_activity
 where application_name like 'muster%' and state like 'idle in transaction%'
"""


@contextlib.asynccontextmanager
async def no_idle_transaction(url: str, *, longer_than: float = 1.0):
    longest = 0.0
    connection = await asyncpg.connect(url)

    async def watch() -> None:
        nonlocal longest
        while True:
            longest = max(longest, await connection.fetchval(IDLE) or 0.0)
            await asyncio.sleep(0.1)

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher
        await connection.close()
    assert longest < longer_than, f"idle in transaction for {longest:.1f} s"
