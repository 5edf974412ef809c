"""Runs one stage of `make test`: prints how long it runs every 25 s and keeps its seconds; `--end` prints all of them."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

SECONDS = Path(".pytest_cache/stages.json")
TICK = 25.0  # seconds between two progress lines


def main() -> int:
    name, *command = sys.argv[1:]
    if name == "--begin":
        SECONDS.parent.mkdir(exist_ok=True)
        SECONDS.write_text("[]")
        return 0
    if name == "--end":
        stages = json.loads(SECONDS.read_text())
        print("\nseconds of each stage:")
        for stage, seconds in stages:
            print(f"  {stage:<18}{seconds:7.1f}")
        print(f"  {'all':<18}{sum(seconds for _, seconds in stages):7.1f}")
        SECONDS.unlink()
        return 0
    print(f"── {name}", flush=True)
    began, ended = time.monotonic(), threading.Event()
    ticker = threading.Thread(target=_tick, args=(name, began, ended))
    ticker.start()
    try:
        code = subprocess.run(command, check=False).returncode
    finally:
        ended.set()
        ticker.join()
    if SECONDS.exists():
        stages = json.loads(SECONDS.read_text())
        SECONDS.write_text(json.dumps([*stages, [name, round(time.monotonic() - began, 1)]]))
    return code


def _tick(name: str, began: float, ended: threading.Event) -> None:
    while not ended.wait(TICK):
        print(f"\n── {name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
