"""Runs benchmarks by name; each prints exactly one JSON line."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))


def main() -> int:
    names = sorted(file.stem for file in HERE.glob("bench_*.py"))
    wanted = [f"bench_{name.replace('-', '_')}" for name in sys.argv[1:]] or names
    for name in wanted:
        if name not in names:
            print(
                f"no benchmark {name[6:]}; there are: {', '.join(n[6:] for n in names)}",
                file=sys.stderr,
            )
            return 2
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
