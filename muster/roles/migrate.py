"""`muster migrate`: brings the metadata database up to date, which `muster up` does by itself."""

import asyncio
import sys

from muster.core.errors import Fault
from muster.core.settings import Settings, SettingsError
from muster.roles import metadata


def main() -> int:
    """0: the database has all migrations of this version; safe to repeat, also at the same time."""
    try:
        applied = asyncio.run(metadata.bring_up_to_date(Settings.load()))
    except (Fault, SettingsError, OSError) as error:
        print(f"muster migrate: {error}", file=sys.stderr)
        return 1
    for name in applied:
        print(name)
    print(f"{len(applied)} migrations applied.", file=sys.stderr)
    return 0
