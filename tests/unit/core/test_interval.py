import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core import interval
from muster.core.errors import InvalidRequest
from muster.core.interval import MOST, IntervalType


@pytest.mark.parametrize(
    ("text", "type", "count"),
    [
        ("PT1M", "Minutes", 1),
        ("PT5M", "Minutes", 5),
        ("PT60S", "Minutes", 1),
        ("PT1H30M", "Minutes", 90),
        ("PT2H", "Hours", 2),
        ("P1DT12H", "Hours", 36),
        ("P1D", "Days", 1),
        ("P1DT0H", "Days", 1),
        ("P1W", "Weeks", 1),
        ("P1M", "Months", 1),
        ("P1Y", "Months", 12),
        ("P1Y6M", "Months", 18),
        ("P100Y", "Months", 1200),
    ],
)
def test_a_duration_is_a_type_and_a_count(text, type, count):
    assert interval.parse(text) == (type, count)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PT0M", "one minute"),
        ("P0D", "one minute"),
        ("PT30S", "seconds"),
        ("PT1M30S", "seconds"),
        ("-PT5M", "negative"),
        ("PT-5M", "negative"),
        ("PT1.5H", "fraction"),
        ("PT0,5H", "fraction"),
        ("P1M1D", "mixes"),
        ("P1W1D", "mixes"),
        ("P1MT1H", "mixes"),
        ("P99999Y", "hundred years"),
        ("P" + "9" * 40 + "D", "hundred years"),
        ("P" + "9" * 5000 + "D", "ISO 8601"),
        ("", "ISO 8601"),
        ("P", "ISO 8601"),
        ("PT", "ISO 8601"),
        ("P1DT", "ISO 8601"),
        ("5M", "ISO 8601"),
        ("pt5m", "ISO 8601"),
        ("PT5M ", "ISO 8601"),
        ("PT٥M", "ISO 8601"),
        ("00:05:00", "ISO 8601"),
    ],
)
def test_what_is_no_interval_is_refused_and_told_why(text, why):
    with pytest.raises(InvalidRequest, match=why) as refused:
        interval.parse(text)

    assert refused.value.code == "InvalidDuration"
    assert len(refused.value.message) < 200


@given(
    st.sampled_from(IntervalType).flatmap(lambda t: st.tuples(st.just(t), st.integers(1, MOST[t])))
)
def test_canonical_text_reads_back_as_the_same_interval(pair):
    assert interval.parse(interval.text(*pair)) == pair


@given(st.text(alphabet="PT0123456789YMWDHS.-", max_size=12))
def test_any_text_is_read_or_refused(text):
    try:
        type, count = interval.parse(text)
    except InvalidRequest:
        return

    assert 1 <= count <= MOST[type]
