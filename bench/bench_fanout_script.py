"""fanout-script: two statements in each of 10,000 schemas."""

from bench import fanout
from bench.fleet import UPDATE


def main() -> None:
    script = f"{UPDATE}; select n from counter"
    fanout.run("fanout-script", script, goal="ratio at least 0.55, ratio_to_peer at least 1.0")
