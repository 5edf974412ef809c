"""A control database belongs to its administrator: what it answers is limited before anything is built of it."""

import json

import msgspec
import pytest

from nodeagent.answer_limits import (
    MOST_CHARACTERS,
    MOST_CONTAINERS,
    MOST_VALUES,
    check_answer,
)


@pytest.mark.parametrize(
    "answer",
    [
        f'"{"x" * MOST_CHARACTERS}"',
        f"[{'[],' * MOST_CONTAINERS}0]",
        f'[{"{},[]," * (MOST_CONTAINERS // 2)}""]',
        f"[{'1,' * (MOST_VALUES + 1)}0]",
    ],
    ids=["long", "arrays", "objects and arrays", "values"],
)
def test_an_answer_that_would_cost_much_is_refused(answer):
    with pytest.raises(msgspec.ValidationError, match="an answer of"):
        check_answer(answer)


@pytest.mark.parametrize("mark", ["[", "{", ",", '\\"[', "\\\\"])
def test_a_text_may_have_any_number_of_marks(mark):
    check_answer(json.dumps({"script": mark * MOST_VALUES}))
