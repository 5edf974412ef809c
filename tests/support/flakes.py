"""`make flakes N=3`: runs the integration suite N times in random order while both cores are kept busy.

Lists every test that failed at least once, with the seed of the order; exits with 1 if there is one.
"""

import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

SUITE = ["tests/integration", "-n", "2", "-m", "not slow", "-q"]


def main() -> int:
    times = int(sys.argv[1])
    failed: dict[str, list[int]] = defaultdict(list)
    load = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 2)]
    for process in load:
        process.start()
    try:
        for number in range(1, times + 1):
            seed = random.randrange(2**32)
            print(f"── run {number} of {times}, seed {seed}", flush=True)
            for test in _run(seed):
                failed[test].append(seed)
    finally:
        for process in load:
            process.kill()
    for test, seeds in sorted(failed.items()):
        print(f"{test}  failed {len(seeds)} of {times}, seeds {', '.join(map(str, seeds))}")
    print(f"{len(failed)} tests failed at least once in {times} runs.")
    return bool(failed)


def _run(seed: int) -> list[str]:
    """The tests that failed. A run that ends before its report is written is an error of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = (f"--randomly-seed={seed}", f"--junitxml={report}")
        done = subprocess.run([sys.executable, "-P", "-m", "pytest", *SUITE, *options])
        if not report.exists():
            raise SystemExit(f"pytest wrote no report and exited with {done.returncode}")
        cases = ElementTree.parse(report).getroot().iter("testcase")
        return [
            f"{case.get('classname')}::{case.get('name')}"
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        ]


def _spin() -> None:
    while True:
        pass


if __name__ == "__main__":
    sys.exit(main())
