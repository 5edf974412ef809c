from datetime import timedelta

import pytest

from fsm import faults, retry
from muster.core.errors import Fault, FieldError, Forbidden, InvalidRequest, Unavailable
from muster.core.failpoints import FailpointError
from muster.core.settings import Secret, Settings

SETTINGS = Settings(database_url=Secret("postgresql://x"))


def test_every_kind_of_fault_has_its_pause():
    assert set(retry.FIRST) == set(Fault.__subclasses__())


@pytest.mark.parametrize("attempt", range(1, 40))
def test_pauses_double_and_stay_below_the_ceiling(attempt):
    pause = retry.after(Unavailable("away"), attempt, SETTINGS)

    most = min(timedelta(seconds=2 ** min(attempt - 1, 10)), SETTINGS.retry_ceiling)
    assert most / 2 <= pause <= most


def test_what_can_never_work_is_not_repeated():
    assert retry.after(InvalidRequest("no"), 1, SETTINGS) is None
    assert retry.after(Forbidden("no"), 1, SETTINGS) is None


@pytest.mark.parametrize("error", [TimeoutError(), ZeroDivisionError(), FailpointError()])
def test_a_surprise_is_repeated(error):
    assert retry.after(error, 1, SETTINGS) is not None


def test_customers_see_faults_and_nothing_of_ours():
    detail = FieldError("properties.x", "wrong")
    error = faults.to_error(InvalidRequest("no", code="Bad", target="properties", details=[detail]))

    assert error["code"] == "Bad"
    assert error["details"] == [
        {"code": "InvalidParameterValue", "message": "wrong", "target": "properties.x"}
    ]
    assert "secret" not in str(faults.to_error(ValueError("secret")))
    assert faults.to_error(TimeoutError())["code"] == "StepTimedOut"


def test_the_last_error_explains_a_deadline():
    assert faults.overdue("making", None, {"code": "X", "message": "y"})["code"] == "X"
    assert "three databases" in faults.overdue("removing", "three databases", None)["message"]
