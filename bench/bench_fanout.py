"""fanout: `select 1` on 10,000 schemas; once as shipped, once without read batches."""

from bench import fanout

SCRIPT = "select 1"


def main() -> None:
    goal = "ratio at least 0.6, ratio_to_peer at least 1.3"
    fanout.run("fanout", SCRIPT, goal=goal, batched=True)
    fanout.run("fanout without read batches", SCRIPT, goal="none")
