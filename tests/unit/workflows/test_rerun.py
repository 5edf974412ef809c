"""What a rerun may say."""

import pytest

from workflows.executions import RERUN_KINDS, _rerun_errors


@pytest.mark.parametrize("only", [["failed"], list(RERUN_KINDS)])
def test_kinds_of_ends_are_taken(only):
    assert _rerun_errors({"only": only}) == []


@pytest.mark.parametrize("only", [[], ["failed"] * 100_000, ["done"]])
def test_other_lists_are_refused_at_once(only):
    assert [error.target for error in _rerun_errors({"only": only})] == ["only"]
