"""A cursor that is none is refused before anything is asked."""

from base64 import urlsafe_b64encode

import msgspec
import pytest

from muster.core.errors import InvalidRequest
from workflows.examinations import TargetKey, _cursor


def encoded(value):
    return urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def test_what_was_given_is_read():
    assert _cursor(None, str) is None
    assert _cursor(encoded("/s"), str) == "/s"
    assert _cursor(encoded(["/s", "d", ""]), TargetKey) == ("/s", "d", "")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (["/s"], TargetKey),
        (["/s", "d", "", ""], TargetKey),
        (["/s", "d\0", ""], TargetKey),
        ([], TargetKey),
        (None, TargetKey),
        ("a\0", str),
        (None, str),
    ],
)
def test_anything_else_is_refused(value, kind):
    with pytest.raises(InvalidRequest, match="'next' of the answer before"):
        _cursor(encoded(value), kind)
