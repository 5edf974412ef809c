"""Every kind of failure has a status, and no status is given by guessing."""

from collections.abc import Iterator

from api import errors
from api.errors import STATUS, ProtocolFault
from muster.core.errors import Fault
from tests.support.requests import request_context


def kinds(of: type[Fault]) -> Iterator[type[Fault]]:
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_kind_of_fault_has_a_status() -> None:
    direct = set(Fault.__subclasses__())

    assert direct == set(STATUS)


def test_every_fault_becomes_an_answer() -> None:
    for kind in kinds(Fault):
        if issubclass(kind, ProtocolFault):
            continue
        answer = errors.answer(kind("because"), request_context())

        assert 400 <= answer.status < 600
        assert b'"code"' in answer.body


def test_what_nobody_expected_says_nothing() -> None:
    from litestar import Request

    made = request_context()
    made.scope["state"]["context"] = made
    secret = ValueError("select * from secret where path = '/etc/passwd'")

    answer = errors.answer_to(Request(made.scope), secret)

    assert answer.status == 500
    assert b"secret" not in answer.body
    assert b"passwd" not in answer.body
