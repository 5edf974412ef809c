"""fanout-write: `update` of one row in each of 10,000 schemas."""

from bench import fanout
from bench.fleet import UPDATE


def main() -> None:
    fanout.run("fanout-write", UPDATE, goal="ratio at least 0.6, ratio_to_peer at least 1.2")
