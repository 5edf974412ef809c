"""account: PUT of a job account until Ready on the embedded stack, with the split per state."""

import contextlib
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.support.stack import SERVER, a_server, an_account, muster_up

TIMES = 10


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with muster_up(Path(folder)) as stack:
            a_server(stack)
            raw = [raw_steps() for _ in range(3)]
            ours, splits = [], []
            for number in range(TIMES):
                stack.put(f"{SERVER}/databases/jobs_b{number}", {"location": "local"})
                began = time.monotonic()
                path = an_account(stack, f"b{number}")
                ours.append(time.monotonic() - began)
                splits.append(split(stack.get(f"{path}/history")["value"]))
            for number in range(TIMES):
                stack.follow(stack.client.delete(f"{SERVER}/jobAgents/b{number}"))
    median = statistics.median(ours)
    limit = statistics.median(raw)
    print(
        json.dumps(
            {
                "name": "account",
                "ours": round(median, 2),
                "limit": round(limit, 2),
                "peer": None,
                "ratio": round(median / limit, 2),
                "spread": [round(min(ours), 2), round(max(ours), 2)],
                "split": {
                    state: round(statistics.median(s[state] for s in splits), 3)
                    for state in splits[0]
                },
                "goal": "at most 3 s",
                "note": "seconds from PUT to Ready, median of 10; limit = one start of the engine's interpreter with its imports",
            }
        ),
        flush=True,
    )


def raw_steps() -> float:
    """What no design can avoid: a process that has imported the engine."""
    began = time.monotonic()
    with contextlib.suppress(subprocess.CalledProcessError):
        subprocess.run([sys.executable, "-P", "-c", "import muster.roles.engine"], check=True)
    return time.monotonic() - began


def split(history: list[dict]) -> dict[str, float]:
    """Seconds in each state on the way to ready."""
    times = [(move["to"], datetime.fromisoformat(move["time"])) for move in history]
    return {
        state: (later - at).total_seconds() for (state, at), (_, later) in itertools.pairwise(times)
    }
