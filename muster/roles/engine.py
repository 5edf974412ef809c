"""The process of an account's core; its start file is its only configuration."""

from datetime import timedelta
from pathlib import Path

from engine.core.main import Core
from muster.roles import workload

GRACE = timedelta(seconds=3)  # for the parts to end their turns; hosts are left alone


async def run(start_file: Path) -> int:
    """An `engine.process.exit_codes.Exit`."""
    return await workload.live("engine", start_file, Core, completion_label="handover", grace=GRACE)
