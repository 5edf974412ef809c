"""Tasks on the schemas of one place, and their outcomes in a read batch."""

from uuid import uuid4

from engine.attempt.outcome import Outcome
from engine.model.task import Task
from tests.support.attempts import TargetDatabase

SCHEMAS = ("s1", "s2", "s3", "s4")
SUCCEEDED = ("Succeeded", None, False, False)
AGAIN = ("Canceled", "BrokenOff", False, True)


def some_tasks(target: TargetDatabase, many: int = len(SCHEMAS)) -> list[Task]:
    """One for each schema, of one run."""
    run = uuid4()
    return [
        target.task(job_execution_id=run, schema_name=schema, ordinal=number)
        for number, schema in enumerate(SCHEMAS[:many], 1)
    ]


def told(outcome: Outcome | None) -> tuple[str, str | None, bool, bool]:
    """How it ended, and whether it is tried again, and whether that counts."""
    assert outcome is not None
    return outcome.lifecycle, outcome.reason, outcome.retry, outcome.again
