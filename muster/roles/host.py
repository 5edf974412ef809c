"""The process that runs an account's tasks; it keeps running when the core ends."""

from datetime import timedelta
from pathlib import Path

from engine.host.main import JobTaskHost
from muster.roles import workload

GRACE = timedelta(hours=24)  # running tasks may finish; a second signal stops at once


async def run(start_file: Path) -> int:
    """An `engine.process.exit_codes.Exit`."""
    return await workload.live(
        "host", start_file, JobTaskHost, completion_label="drained", grace=GRACE
    )
