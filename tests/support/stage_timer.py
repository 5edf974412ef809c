"""Runs one stage of `make test` and keeps its seconds; `--end` prints the split."""

import json
import subprocess
import sys
import time
from pathlib import Path

KEPT = Path(".pytest_cache/split.json")


def main() -> int:
    name, *command = sys.argv[1:]
    if name == "--begin":
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text("[]")
        return 0
    if name == "--end":
        split = json.loads(KEPT.read_text())
        print("\nsplit of this run, in seconds:")
        for stage, seconds in split:
            print(f"  {stage:<18}{seconds:7.1f}")
        print(f"  {'all':<18}{sum(seconds for _, seconds in split):7.1f}")
        KEPT.unlink()
        return 0
    print(f"── {name}", flush=True)
    began = time.monotonic()
    code = subprocess.run(command, check=False).returncode
    if KEPT.exists():
        split = json.loads(KEPT.read_text())
        KEPT.write_text(json.dumps([*split, [name, round(time.monotonic() - began, 1)]]))
    return code


if __name__ == "__main__":
    sys.exit(main())
