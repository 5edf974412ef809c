"""A step that an older version of Muster accepted may have options that can't be carried out."""

from uuid import UUID

import pytest

from engine.core.runs.planner import reason_of, refuse
from engine.scheduling.runs import StepDefinition
from muster.core.errors import InvalidRequest


def a_plan(**more) -> StepDefinition:
    given = {
        "step_id": 1, "name": "s", "target_group_id": UUID(int=1), "target_group_name": "g",
        "timeout_seconds": 60,
    }  # fmt: skip
    return StepDefinition(**given | more)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"has_output": True}, "an output table"),
    ],
)
def test_an_option_that_can_not_be_carried_out_fails_the_step_before_it_begins(more, word):
    with pytest.raises(InvalidRequest, match=word) as refused:
        refuse(a_plan(**more))

    assert reason_of(refused.value) == "NotSupported"
    assert "nothing of this step was started" in refused.value.message


def test_any_other_option_passes():
    assert refuse(a_plan(options={"advance": "barrier", "guard": True})) is None
