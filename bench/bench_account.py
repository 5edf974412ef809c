"""account: PUT of a job account until Ready on the embedded stack, with the seconds in each state."""

import contextlib
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from bench.report import print_line, summary
from tests.support.stack import SERVER, a_server, an_account, muster_up

ROUNDS = 10


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with muster_up(Path(folder)) as stack:
            a_server(stack)
            rounds: dict[str, list[float]] = {"ours": [], "limit": []}
            splits = []
            for number in range(ROUNDS):
                rounds["limit"].append(interpreter_start())
                stack.put(f"{SERVER}/databases/jobs_b{number}", {"location": "local"})
                began = time.monotonic()
                path = an_account(stack, f"b{number}")
                rounds["ours"].append(time.monotonic() - began)
                splits.append(split(stack.get(f"{path}/history")["value"]))
            for number in range(ROUNDS):
                stack.follow(stack.client.delete(f"{SERVER}/jobAgents/b{number}"))
    print_line(
        summary(
            "account",
            rounds,
            digits=2,
            split={
                state: round(statistics.median(s[state] for s in splits), 3) for state in splits[0]
            },
            goal="at most 3 s",
            note=f"seconds from PUT to Ready, median of {ROUNDS}; limit: one start of the engine's"
            " interpreter with its imports, before each",
        )
    )


def interpreter_start() -> float:
    """Seconds until a process has imported the engine: every design needs that."""
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
