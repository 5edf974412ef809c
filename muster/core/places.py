"""Where an installation on this machine keeps its data, unless it is told otherwise."""

import os
from pathlib import Path

from muster.core.settings import surroundings


def default_data_dir() -> Path:
    environ = surroundings()
    if base := environ.get("XDG_DATA_HOME"):
        return Path(base) / "muster"
    if os.geteuid() == 0:
        return Path("/var/lib/muster")  # PostgreSQL runs as another user and must get there
    return Path(environ.get("HOME") or Path.home()) / ".local" / "share" / "muster"
