"""Stands for an engine, a host or a command: a small program that speaks the client and does as told.

Its behaviour is an argument: run (until refused or asked), succeed, quiet (runs, says nothing), exit
(dies before its first word), deaf (ignores SIGTERM and 410), slow:<seconds> (first word late).
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from fsm.launch.client import Session, read_start
from muster.core.errors import Fault


def program(start, folder, start_file):
    """What a launcher calls instead of `muster engine`."""
    command = [sys.executable, "-P", str(Path(__file__).absolute()), f"{start.kind}"]
    return [
        *command,
        "--data-dir",
        str(folder),
        "--start-file",
        str(start_file),
        *start.spec.arguments,
    ]


async def live(start, how: str) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if how == "quiet":
        await stop.wait()
        return 0
    if how.startswith("slow:"):
        await asyncio.sleep(float(how[5:]))
    async with Session(start) as session:
        await session.running(
            {"pid": os.getpid(), "epoch": start.epoch, "secrets": sorted(start.secrets)}
        )
        if how == "succeed":
            await session.success({"done": True})
            return 0
        while True:
            waits = [asyncio.create_task(event.wait()) for event in (stop, session.lost)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if how != "deaf":
                break
            stop.clear()
            session.lost.clear()
        if session.lost.is_set():
            return 4
        await session.success({"handed": "over"})
        return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--start-file", type=Path)
    parser.add_argument("--how", default="run")
    options = parser.parse_args()
    start = read_start(options.start_file)
    print(f"{start.kind} {start.id} lives as {options.how}", flush=True)
    if options.how == "exit":
        return 3
    try:
        return asyncio.run(live(start, options.how))
    except Fault as error:
        print(error, flush=True)
        return 4


if __name__ == "__main__":
    sys.exit(main())
