"""Which exit code a run comes to."""

import pytest

from muster.cli.exits import MEANINGS, Exit, of_run
from tests.unit.cli.fake_rest import a_summary


def reason(name):
    return [{"reason": name, "count": 1}]


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (a_summary("Succeeded", Succeeded=3), 0),
        (a_summary("SucceededWithSkipped", Succeeded=2, Skipped=1), 0),
        (a_summary("Failed", Succeeded=2, Failed=1), 2),
        (a_summary("TimedOut", Succeeded=2, TimedOut=1), 2),
        (a_summary("Failed", Failed=3), 3),
        (a_summary("Failed", Failed=1, Skipped=1), 3),
        (a_summary("Failed"), 3),
        (a_summary("Canceled", Succeeded=2, Canceled=1), 4),
        (a_summary("Skipped", Skipped=2), 4),
        (a_summary("Failed", Succeeded=2, Failed=1, byReason=reason("OutcomeUnknown")), 8),
        (
            a_summary(
                "WaitingForChildJobExecutions", Created=2, Failed=1, byReason=reason("Halted")
            ),
            8,
        ),
        (a_summary("Failed", Failed=1, byReason=reason("StatementFailed")), 3),
    ],
)
def test_a_run_has_its_exit_code(summary, expected):
    assert of_run(summary) == expected


def test_every_code_has_a_meaning_and_the_numbers_stay():
    assert set(MEANINGS) == set(Exit)
    assert [code.value for code in Exit] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 130]
