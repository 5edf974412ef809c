"""`muster migrate`: brings the metadata database up to date, which `muster up` does by itself."""

import asyncio
import ssl
import sys
from datetime import timedelta

import asyncpg

from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.settings import Settings, SettingsError
from muster.roles import metadata

WAIT_LIMIT = timedelta(minutes=5)
PAUSE = timedelta(seconds=2)
AWAY = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)


def main() -> int:
    """0: the database has all migrations of this version; safe to repeat, also at the same time."""
    try:
        applied = asyncio.run(migrate(Settings.load(), Clock()))
    except (Fault, SettingsError, *AWAY) as error:
        print(f"muster migrate: {error}", file=sys.stderr)
        return 1
    for name in applied:
        print(name)
    print(f"{len(applied)} migrations applied.", file=sys.stderr)
    return 0


async def migrate(settings: Settings, clock: Clock) -> list[str]:
    """Waits for a database that can't be reached yet: after a reboot it may start later than this."""
    deadline, reported = clock.monotonic() + WAIT_LIMIT.total_seconds(), ""
    while True:
        try:
            return await metadata.bring_up_to_date(settings)
        except AWAY as error:
            if isinstance(error, ssl.SSLError) or clock.monotonic() >= deadline:
                raise
            if (reason := str(error) or type(error).__name__) != reported:
                reported = reason
                limit = f"{WAIT_LIMIT.total_seconds():g} s"
                print(
                    f"muster migrate: waits up to {limit} for the metadata database: {reason}",
                    file=sys.stderr,
                    flush=True,
                )
        await clock.sleep(PAUSE)
