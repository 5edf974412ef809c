import pytest

from muster.core.errors import Fault, FieldError, InvalidRequest, NotFound, Unavailable, refuse


def test_nothing_wrong_is_not_refused():
    assert refuse([]) is None


def test_one_error_is_the_refusal_and_many_are_its_details():
    one, two = FieldError("a", "bad"), FieldError("b", "worse", "Other")

    with pytest.raises(InvalidRequest) as single:
        refuse([one])
    with pytest.raises(InvalidRequest) as both:
        refuse([one, two])

    assert (single.value.target, single.value.details) == ("a", ())
    assert both.value.details == (one, two)
    assert "2 fields" in both.value.message


def test_a_code_is_an_argument_with_a_default_per_kind():
    assert NotFound("x").code == "ResourceNotFound"
    assert NotFound("x", code="Y").code == "Y"
    assert Unavailable("x", retry_after=3).retry_after == 3
    assert all(kind.default_code for kind in Fault.__subclasses__())
