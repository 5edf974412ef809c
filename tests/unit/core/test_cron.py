from datetime import datetime
from itertools import islice

import pytest

from muster.core import cron
from muster.core.errors import InvalidRequest


def walls(line, since, count=3):
    return [f"{w:%Y-%m-%d %H:%M}" for w in islice(cron.parse(line).walls(since), count)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("*/20 * * * *", ["2026-01-02 17:40", "2026-01-02 18:00", "2026-01-02 18:20"]),
        ("30 17 * * *", ["2026-01-02 17:30", "2026-01-03 17:30", "2026-01-04 17:30"]),
        ("0 8,20 * * mon-FRI", ["2026-01-02 20:00", "2026-01-05 08:00", "2026-01-05 20:00"]),
        ("0 0 31 * *", ["2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("0 0 29 feb */7", ["2032-02-29 00:00", "2060-02-29 00:00", "2088-02-29 00:00"]),
        ("0 0 13 * FRI", ["2026-01-09 00:00", "2026-01-13 00:00", "2026-01-16 00:00"]),
        ("0 0 30 2 MON", ["2026-02-02 00:00", "2026-02-09 00:00", "2026-02-16 00:00"]),
        ("0 0 * * 5-7", ["2026-01-03 00:00", "2026-01-04 00:00", "2026-01-09 00:00"]),
        ("0 0 1 JAN,JUL *", ["2026-07-01 00:00", "2027-01-01 00:00", "2027-07-01 00:00"]),
        ("@hourly", ["2026-01-02 18:00", "2026-01-02 19:00", "2026-01-02 20:00"]),
        ("@daily", ["2026-01-03 00:00", "2026-01-04 00:00", "2026-01-05 00:00"]),
        ("@weekly", ["2026-01-04 00:00", "2026-01-11 00:00", "2026-01-18 00:00"]),
        ("@monthly", ["2026-02-01 00:00", "2026-03-01 00:00", "2026-04-01 00:00"]),
        ("@yearly", ["2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00"]),
    ],
)
def test_a_line_names_its_minutes(line, expected):
    assert walls(line, datetime(2026, 1, 2, 17, 30)) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        "* * * *",
        "0 * * * * *",
        "@reboot",
        "@",
        "? * * * *",
        "* * L * *",
        "* * * * MON#1",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * * MONDAY",
        "* * * MON *",
        "22-4 * * * *",
        "*/0 * * * *",
        "*/60 * * * *",
        "5/15 * * * *",
        "1,,2 * * * *",
        "1- * * * *",
        "-1 * * * *",
        "*/ * * * *",
        "٣ * * * *",
        "1;2 * * * *",
        "1," * 200 + "1 * * * *",
    ],
)
def test_what_is_not_promised_is_refused(line):
    with pytest.raises(InvalidRequest) as refused:
        cron.parse(line)

    assert refused.value.target == "cron"


@pytest.mark.parametrize("line", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 feb */2"])
def test_a_date_that_never_comes_is_refused_at_once(line):
    with pytest.raises(InvalidRequest, match="never have"):
        cron.parse(line)


def test_the_search_ends_with_the_calendar():
    assert walls("0 0 29 2 *", datetime(9990, 1, 1), 5) == ["9992-02-29 00:00", "9996-02-29 00:00"]
