from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muster.core import schedule as schedules
from muster.core.interval import IntervalType
from muster.core.schedule import DEFAULT_END, DEFAULT_START, Misfire, Schedule, ScheduleType

ENABLED = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def once(**fields):
    return Schedule(enabled=True, **fields)


def every(count, type, **fields):
    return Schedule(
        type=ScheduleType.RECURRING,
        enabled=True,
        interval_type=IntervalType(type),
        interval_count=count,
        **fields,
    )


def by_cron(line, zone=None, **fields):
    return Schedule(type=ScheduleType.CRON, enabled=True, cron=line, time_zone=zone, **fields)


def slots(schedule, anchor=ENABLED, **bounds):
    return list(schedules.slots(schedule, anchor=anchor, **bounds))


def test_once_has_its_start_as_slot():
    schedule = once(start=at("2026-02-01"))

    assert slots(schedule) == [at("2026-02-01")]
    assert slots(schedule, after=at("2026-02-01")) == []
    assert slots(schedule, until=at("2026-01-31")) == []


@pytest.mark.parametrize("start", [DEFAULT_START, at("2020-01-01")])
def test_once_with_a_past_start_fires_at_enabling(start):
    assert slots(once(start=start)) == [ENABLED]


def test_a_disabled_schedule_has_no_slot():
    assert slots(Schedule()) == []


def test_an_interval_counts_from_the_start_and_never_into_the_past():
    schedule = every(7, "Hours", start=at("2025-12-31T20:00"))

    assert slots(schedule, limit=2) == [at("2026-01-01T17:00"), at("2026-01-02T00:00")]


def test_the_default_start_counts_from_the_anchor():
    assert slots(every(1, "Days"), limit=2) == [ENABLED, ENABLED + timedelta(days=1)]
    assert slots(every(1, "Months"), after=ENABLED, limit=1) == [at("2026-02-01T12:00")]


def test_an_offset_in_the_start_is_the_same_instant():
    start = datetime(2026, 2, 1, 2, tzinfo=timezone(timedelta(hours=2)))

    assert slots(every(1, "Weeks", start=start), limit=1) == [at("2026-02-01")]


def test_months_keep_the_day_as_far_as_the_month_has_it():
    schedule = every(1, "Months", start=at("2028-01-31T05:00"))

    found = [f"{slot:%m-%d}" for slot in slots(schedule, limit=5)]

    assert found == ["01-31", "02-29", "03-31", "04-30", "05-31"]


def test_the_end_is_not_a_slot():
    schedule = every(10, "Minutes", start=ENABLED, end=ENABLED + timedelta(minutes=20))

    assert slots(schedule) == [ENABLED, ENABLED + timedelta(minutes=10)]


def test_until_is_a_slot_and_after_is_not():
    schedule = every(10, "Minutes", start=ENABLED)

    found = slots(schedule, after=ENABLED, until=ENABLED + timedelta(minutes=20))

    assert found == [ENABLED + timedelta(minutes=10), ENABLED + timedelta(minutes=20)]


def test_a_minute_interval_from_the_year_one_jumps():
    schedule = every(1, "Minutes", start=DEFAULT_START + timedelta(seconds=1))

    assert slots(schedule, limit=1) == [ENABLED + timedelta(seconds=1)]


@pytest.mark.parametrize("type", ["Days", "Months"])
def test_slots_end_with_the_calendar(type):
    late = datetime(9999, 12, 1, tzinfo=UTC)
    schedule = every(20, type, start=late, end=datetime.max.replace(tzinfo=UTC))

    assert slots(schedule, anchor=late)[0] == late
    assert len(slots(schedule, anchor=late)) == (2 if type == "Days" else 1)


@given(
    st.sampled_from(IntervalType),
    st.integers(1, 40),
    st.datetimes(datetime(2020, 1, 1), datetime(2026, 1, 1)),
    st.timedeltas(timedelta(0), timedelta(days=90)),
)
def test_jumping_finds_what_counting_finds(type, count, start, later):
    schedule = every(count, type, start=start.replace(tzinfo=UTC))
    after = schedule.start + later
    counted = schedules.slots(schedule, anchor=schedule.start)

    found = slots(schedule, anchor=schedule.start, after=after, limit=3)

    assert found == list(islice((slot for slot in counted if slot > after), 3))


BERLIN_SPRING, BERLIN_AUTUMN = at("2026-03-29T01:00"), at("2026-10-25T01:00")


def test_check_57_a_slot_in_the_gap_comes_at_its_end():
    schedule = by_cron("30 2 * * *", "Europe/Berlin")

    assert slots(schedule, after=at("2026-03-28T12:00"), limit=2) == [
        BERLIN_SPRING,
        at("2026-03-30T00:30"),
    ]
    assert slots(schedule, anchor=BERLIN_SPRING, limit=1) == [BERLIN_SPRING]
    assert slots(schedule, after=BERLIN_SPRING, limit=1) == [at("2026-03-30T00:30")]


def test_check_57_a_doubled_slot_comes_once_the_first_time():
    schedule = by_cron("30 2 * * *", "Europe/Berlin")

    found = slots(schedule, after=at("2026-10-24T12:00"), limit=2)

    assert found == [at("2026-10-25T00:30"), at("2026-10-26T01:30")]
    assert slots(schedule, after=BERLIN_AUTUMN, limit=1) == [at("2026-10-26T01:30")]


def test_a_day_that_was_left_out_runs_at_its_end():
    schedule = by_cron("0 8 30 12 *", "Pacific/Apia")

    assert slots(schedule, anchor=at("2011-01-01"), limit=1) == [at("2011-12-30T10:00")]


def test_cron_keeps_start_and_end():
    schedule = by_cron("@daily", start=at("2026-02-01"), end=at("2026-02-03"))

    assert slots(schedule) == [at("2026-02-01"), at("2026-02-02")]


CHANGES = [
    ("Europe/Berlin", BERLIN_SPRING),
    ("Europe/Berlin", BERLIN_AUTUMN),
    ("America/New_York", at("2026-03-08T07:00")),
    ("America/New_York", at("2026-11-01T06:00")),
    ("Australia/Lord_Howe", at("2026-04-04T15:00")),
    ("Australia/Lord_Howe", at("2026-10-03T15:30")),
    ("Asia/Kathmandu", at("1985-12-31T18:30")),
    ("Pacific/Apia", at("2011-12-30T10:00")),
    ("UTC", at("2026-02-28T12:00")),
]


@st.composite
def fields(draw, least, most, near):
    """A field's text and the values it means; `near` are values worth naming."""
    value = st.integers(least, most) | st.sampled_from(near)
    terms, meant = [], set()
    for _ in range(draw(st.integers(1, 2))):
        low, high = sorted((draw(value), draw(value)))
        step = draw(st.integers(1, (most - least) // 2))
        text, values = draw(
            st.sampled_from(
                [
                    ("*", range(least, most + 1)),
                    (f"*/{step}", range(least, most + 1, step)),
                    (f"{low}", [low]),
                    (f"{low}-{high}", range(low, high + 1)),
                    (f"{low}-{high}/{step}", range(low, high + 1, step)),
                ]
            )
        )
        terms.append(text)
        meant |= set(values)
    return ",".join(terms), meant


def brute(zone, since, until, minutes, hours, days, weekdays, either):
    """Every minute of real time: what the clock shows for the first time, or has just jumped over."""

    def wanted(wall):
        on = (wall.day in days, wall.isoweekday() in weekdays)
        return wall.minute in minutes and wall.hour in hours and (any(on) if either else all(on))

    found, latest = [], (since - MINUTE).astimezone(zone).replace(tzinfo=None)
    while since <= until:
        now = since.astimezone(zone).replace(tzinfo=None)
        new = (latest + n * MINUTE for n in range(1, (now - latest) // MINUTE + 1))
        if any(map(wanted, new)):
            found.append(since)
        latest = max(latest, now)
        since += MINUTE
    return found


@given(
    st.sampled_from(CHANGES),
    fields(0, 59, [0, 30]),
    fields(0, 23, [0, 1, 2, 3]),
    fields(1, 31, [1, 8, 29, 30, 31]),
    fields(1, 6, [5, 6]),
    st.integers(0, 2 * 24 * 60),
)
@example(
    CHANGES[7],
    ("*", set(range(60))),
    ("*", set(range(24))),
    ("30", {30}),
    ("*", set(range(1, 8))),
    0,
)
def test_cron_misses_nothing_and_doubles_nothing_around_a_change(
    change, minutes, hours, days, weekdays, offset
):
    zone, instant = ZoneInfo(change[0]), change[1]
    first, until = instant - timedelta(hours=30), instant + timedelta(hours=30)
    after = first + offset * MINUTE
    # `*` and `*/n` of a weekday begin with Sunday, which the ranges drawn here leave out.
    weekdays = ("*", set(range(1, 8))) if "*" in weekdays[0] else weekdays
    either = not (days[0].startswith("*") or weekdays[0].startswith("*"))
    schedule = by_cron(f"{minutes[0]} {hours[0]} {days[0]} * {weekdays[0]}", change[0])

    found = slots(schedule, anchor=first, after=after, until=until)

    expected = brute(zone, first, until, minutes[1], hours[1], days[1], weekdays[1], either)
    assert found == [slot for slot in expected if slot > after]
    assert all(a < b for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (once(), timedelta(hours=24)),
        (every(10, "Minutes"), timedelta(minutes=5)),
        (every(10, "Minutes", end=ENABLED + MINUTE), timedelta(minutes=5)),
        (every(1, "Days"), timedelta(hours=1)),
        (every(1, "Months", start=at("2025-01-01T12:00")), timedelta(hours=1)),
        (by_cron("*/4 * * * *"), timedelta(minutes=2)),
        (by_cron("0 12 1 1 *"), timedelta(hours=1)),
        (every(1, "Days", misfire=Misfire.SKIP), timedelta(minutes=1)),
        (every(1, "Minutes", misfire=Misfire.SKIP), timedelta(seconds=30)),
        (once(misfire=Misfire.SKIP), timedelta(minutes=1)),
        (once(within=timedelta(days=3)), timedelta(days=3)),
    ],
)
def test_a_slot_may_be_late_by_half_an_interval_within_limits(schedule, expected):
    assert schedules.grace(schedule, ENABLED) == expected


def test_the_last_slot_of_the_calendar_has_the_whole_grace():
    last = datetime(9999, 12, 1, tzinfo=UTC)

    assert schedules.grace(every(1, "Months", start=last), last) == timedelta(hours=1)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(),
        once(start=at("2020-01-01"), interval_type=IntervalType.DAYS, interval_count=1),
        every(1, "Minutes", within=MINUTE),
        by_cron("0 3 * * SUN", "Europe/Berlin"),
        by_cron("@daily"),
    ],
)
def test_a_good_schedule_has_no_errors(schedule):
    assert schedules.check(schedule) == []


def test_all_errors_come_at_once():
    schedule = by_cron(
        "0 0 30 2 *",
        "europe/berlim",
        start=at("2026-01-01"),
        end=at("2026-01-01"),
        interval_count=0,
        misfire=Misfire.SKIP,
        within=MINUTE,
    )

    errors = {error.target: error.message for error in schedules.check(schedule, target="s")}

    assert set(errors) == {"s.endTime", "s.interval", "s.cron", "s.timeZone", "s.misfire.within"}
    assert "Europe/Berlin" in errors["s.timeZone"]


@pytest.mark.parametrize(
    ("schedule", "target", "code"),
    [
        (every(0, "Days"), "interval", "InvalidDuration"),
        (every(10**9, "Minutes"), "interval", "InvalidDuration"),
        (Schedule(type=ScheduleType.RECURRING), "interval", "InvalidDuration"),
        (Schedule(type=ScheduleType.CRON), "cron", "InvalidParameterValue"),
        (once(cron="@daily"), "cron", "InvalidParameterValue"),
        (once(time_zone="UTC"), "timeZone", "InvalidParameterValue"),
        (once(within=timedelta(0)), "misfire.within", "InvalidParameterValue"),
        (once(start=datetime(2026, 1, 1)), "startTime", "InvalidParameterValue"),
        (
            once(start=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=3)))),
            "startTime",
            "InvalidParameterValue",
        ),
        (once(start=DEFAULT_END), "endTime", "InvalidParameterValue"),
    ],
)
def test_each_error_names_its_field(schedule, target, code):
    (error,) = schedules.check(schedule)

    assert (error.target, error.code) == (f"properties.schedule.{target}", code)


@pytest.mark.parametrize(
    "zone", ["", "../etc/passwd", "/etc/localtime", "UTC ", "europe/berlin", "x" * 9999]
)
def test_a_zone_is_a_listed_name(zone):
    (error,) = schedules.check(by_cron("@daily", zone))

    assert error.target.endswith("timeZone")
    assert len(error.message) < 200
