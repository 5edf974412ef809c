"""The peer: pgqueuer in a process and an environment of its own, driven by lines on stdin.

with a_peer(queue_url, target, tasks, at_once=100) as ask:
    ask("drain")     jobs per second: all tasks, from the worker's first poll until all are recorded
    ask("idle")      milliseconds from enqueueing the first of the tasks until it is recorded
"""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PYTHON = HERE.parent / ".venv/peer/bin/python"  # made by `make bench`


@contextlib.contextmanager
def a_peer(
    queue: str, target: dict[str, Any], tasks: list[tuple[str, tuple[str, ...]]], *, at_once: int
) -> Iterator[Callable[[str], float]]:
    """`queue`: the address of its database; `target`: how to connect to a database of a task."""
    if not PYTHON.exists():
        raise SystemExit("pgqueuer is missing: `make bench` installs it")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"queue": queue, "target": target, "tasks": tasks, "at_once": at_once}, file)
        file.flush()
        process = subprocess.Popen(
            [PYTHON, "-P", HERE / "pgqueuer_worker.py", file.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin
        assert process.stdout
        replies, commands = process.stdout, process.stdin

        def ask(command: str) -> float:
            print(command, file=commands, flush=True)
            reply = replies.readline()
            if not reply:
                raise SystemExit(f"pgqueuer ended with {process.wait(20)}")
            return float(reply)

        try:
            yield ask
        finally:
            commands.close()
            process.wait(60)
