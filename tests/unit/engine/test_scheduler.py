"""What becomes of slots, for every kind of lateness; the database's time is an argument."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.scheduler import MAX_SLOTS, Decision, ScheduledJob, SlotOutcome, decide
from muster.core.schedule import DEFAULT_END, DEFAULT_START

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SECOND = timedelta(seconds=1)


def a_job(**more) -> ScheduledJob:
    """Hourly since yesterday noon, followed up to an hour ago; it is noon and a second."""
    given = dict(
        job_id=UUID(int=1), job_name="nightly", row_version=7, interval_type="Hours", interval_count=1,
        cron=None, time_zone=None, start_time=DEFAULT_START, end_time=DEFAULT_END, since=NOON - DAY,
        misfire_policy="runOnce", misfire_within_seconds=None, last_slot=NOON - HOUR, now=NOON + SECOND,
    )  # fmt: skip
    return ScheduledJob(**(given | more))


def a_cron(line: str, zone: str | None = None, **more) -> ScheduledJob:
    return a_job(interval_type="Once", cron=line, time_zone=zone, **more)


def a_once(**more) -> ScheduledJob:
    return a_job(interval_type="Once", last_slot=None, **more)


def told(decision: Decision) -> list[tuple]:
    return [(slot.at, str(slot.outcome), slot.reason) for slot in decision.slots]


def fired(decision: Decision) -> list[datetime]:
    return [slot.at for slot in decision.slots if slot.outcome is SlotOutcome.FIRED]


# The newest fires


def test_a_slot_that_has_come_fires_and_the_next_is_known():
    decision = decide(a_job())

    assert told(decision) == [(NOON, "fired", None)] and decision.next == NOON + HOUR


def test_a_slot_fires_at_its_very_instant_and_not_before():
    assert fired(decide(a_job(now=NOON))) == [NOON]
    assert decide(a_job(now=NOON - timedelta.resolution)) == Decision(
        a_job(now=NOON - timedelta.resolution), (), NOON
    )


def test_half_the_interval_late_is_late():
    assert fired(decide(a_job(now=NOON + HOUR / 2))) == [NOON]
    late = decide(a_job(now=NOON + HOUR / 2 + SECOND))
    assert told(late) == [(NOON, "missed", "Late")] and late.next == NOON + HOUR


def test_an_hour_is_the_most_that_a_daily_job_is_late():
    daily = a_job(interval_type="Days", last_slot=NOON - DAY)
    assert fired(decide(replace(daily, now=NOON + HOUR))) == [NOON]
    assert fired(decide(replace(daily, now=NOON + HOUR + SECOND))) == []


def test_after_an_outage_the_newest_fires_and_the_others_were_missed():
    decision = decide(a_job(last_slot=NOON - 4 * HOUR, now=NOON + 10 * MINUTE))

    assert told(decision) == [
        (NOON - 3 * HOUR, "missed", "Late"),
        (NOON - 2 * HOUR, "missed", "Late"),
        (NOON - HOUR, "missed", "Late"),
        (NOON, "fired", None),
    ]


def test_after_an_outage_that_ends_between_two_slots_nothing_fires():
    decision = decide(a_job(last_slot=NOON - 4 * HOUR, now=NOON + 40 * MINUTE))

    assert [slot.outcome for slot in decision.slots] == [SlotOutcome.MISSED] * 4
    assert decision.next == NOON + HOUR


def test_those_within_the_limit_give_way_to_the_newest():
    decision = decide(
        a_job(last_slot=NOON - 4 * HOUR, misfire_within_seconds=2 * 3600 + 60, now=NOON + SECOND)
    )

    assert told(decision) == [
        (NOON - 3 * HOUR, "missed", "Late"),
        (NOON - 2 * HOUR, "coalesced", "Newer"),
        (NOON - HOUR, "coalesced", "Newer"),
        (NOON, "fired", None),
    ]


def test_a_schedule_that_skips_makes_up_for_a_minute_at_most():
    skips = a_job(misfire_policy="skip")
    assert fired(decide(replace(skips, now=NOON + MINUTE))) == [NOON]
    assert told(decide(replace(skips, now=NOON + MINUTE + SECOND))) == [(NOON, "missed", "Late")]


@pytest.mark.parametrize("within", [0, 1])
def test_no_schedule_can_ask_for_more_than_the_scheduler_can_do(within):
    assert fired(decide(a_job(misfire_within_seconds=within, now=NOON + 4 * SECOND))) == [NOON]
    assert fired(decide(a_job(misfire_within_seconds=within, now=NOON + 6 * SECOND))) == []


# Never for the past


def test_nothing_fires_for_the_time_before_the_schedule_was_enabled():
    since = NOON - 90 * MINUTE
    decision = decide(a_cron("0 * * * *", since=since, last_slot=None, now=NOON + MINUTE))

    assert [slot.at for slot in decision.slots] == [NOON - HOUR, NOON]


def test_a_schedule_with_the_default_start_begins_when_it_is_enabled():
    since = NOON - 20 * MINUTE
    decision = decide(a_job(since=since, last_slot=None))

    assert fired(decision) == [since] and decision.next == since + HOUR


def test_an_old_start_is_where_the_counting_begins_and_nothing_more():
    start = datetime(2020, 1, 1, 0, 30, tzinfo=UTC)
    decision = decide(a_job(start_time=start, since=NOON - 20 * MINUTE, last_slot=None))

    assert decision.slots == () and decision.next == NOON + 30 * MINUTE


@pytest.mark.parametrize("start", [DEFAULT_START, NOON - 400 * DAY])
def test_once_with_a_past_start_fires_when_it_is_enabled(start):
    decision = decide(a_once(start_time=start, since=NOON))

    assert fired(decision) == [NOON] and decision.next is None


def test_once_waits_for_its_start():
    assert decide(a_once(start_time=NOON + DAY)).next == NOON + DAY
    assert fired(decide(a_once(start_time=NOON))) == [NOON]


def test_once_may_be_a_day_late():
    assert fired(decide(a_once(start_time=NOON, since=NOON, now=NOON + DAY))) == [NOON]
    late = decide(a_once(start_time=NOON, since=NOON, now=NOON + DAY + SECOND))
    assert told(late) == [(NOON, "missed", "Late")] and late.next is None


def test_once_that_is_decided_never_comes_again():
    assert decide(a_once(start_time=NOON, now=NOON + HOUR)).slots != ()
    decided = replace(a_once(start_time=NOON, now=NOON + HOUR), last_slot=NOON)
    assert decide(decided) == Decision(decided, (), None)


# Ends


def test_the_end_is_the_first_instant_that_is_no_slot():
    decision = decide(a_job(end_time=NOON))
    assert decision.slots == () and decision.next is None
    last = decide(a_job(end_time=NOON + SECOND))
    assert fired(last) == [NOON] and last.next is None


def test_slots_from_before_the_end_are_decided_behind_it():
    decision = decide(a_job(last_slot=NOON - 3 * HOUR, end_time=NOON - HOUR, now=NOON + 5 * MINUTE))

    assert told(decision) == [(NOON - 2 * HOUR, "missed", "Late")] and decision.next is None


# Clocks


def test_a_clock_that_goes_back_makes_no_slot_come_twice():
    """The database gives the last slot up to its time: what it calls future is decided, not due."""
    back = decide(a_job(last_slot=NOON - 2 * HOUR, now=NOON - 61 * MINUTE))
    assert back.slots == () and back.next == NOON - HOUR
    there = decide(a_job(last_slot=NOON - HOUR, now=NOON - 59 * MINUTE))
    assert there.slots == () and there.next == NOON


def test_a_clock_behind_the_enabling_waits_for_it():
    decision = decide(a_job(since=NOON, last_slot=None, now=NOON - HOUR))

    assert decision.slots == () and decision.next == NOON


def test_a_jump_of_a_day_fires_once():
    decision = decide(a_job(interval_type="Minutes", last_slot=NOON - DAY, now=NOON + SECOND))

    assert len(decision.slots) == 1440 and fired(decision) == [NOON]
    assert {slot.reason for slot in decision.slots[:-1]} == {"Late"}


@pytest.mark.parametrize("outage", [2 * DAY, 30 * DAY, 3000 * DAY])
def test_a_long_outage_is_told_by_a_day_of_rows(outage):
    since = NOON - outage
    decision = decide(a_cron("* * * * *", since=since, last_slot=None, now=NOON + SECOND))

    assert len(decision.slots) == MAX_SLOTS + 1
    assert told(decision)[0] == (since, "missed", "LateUntilNextRow")
    assert decision.slots[1].at == NOON - (MAX_SLOTS - 1) * MINUTE and fired(decision) == [NOON]


def test_what_a_long_outage_leaves_within_the_limit_gave_way():
    decision = decide(
        a_cron(
            "* * * * *",
            since=NOON - 3 * DAY,
            last_slot=None,
            now=NOON,
            misfire_within_seconds=10**6,
        )
    )

    assert told(decision)[0] == (NOON - 3 * DAY, "coalesced", "NewerUntilNextRow")


def test_a_rare_slot_is_found_however_long_ago_it_was():
    line = "0 0 29 2 *"
    decision = decide(
        a_cron(line, since=datetime(2019, 1, 1, tzinfo=UTC), last_slot=None, now=NOON)
    )

    assert [slot.at.year for slot in decision.slots] == [2020, 2024] and decision.next.year == 2028


# Wall clocks: slots worked out by hand from the zones' own announcements


@pytest.mark.parametrize(
    ("zone", "line", "since", "now", "expected"),
    [
        # In the gap of the spring: at its end. Then the next day at its usual time.
        ("Europe/Berlin", "30 2 * * *", (2026, 3, 28, 12), (2026, 3, 29, 1, 0, 1), [(2026, 3, 29, 1)]),
        ("Europe/Berlin", "30 2 * * *", (2026, 3, 29, 12), (2026, 3, 30, 0, 30, 1), [(2026, 3, 30, 0, 30)]),
        # Twice in autumn: once, the first time.
        ("Europe/Berlin", "30 2 * * *", (2026, 10, 24, 12), (2026, 10, 25, 0, 30, 1), [(2026, 10, 25, 0, 30)]),
        ("Europe/Berlin", "30 2 * * *", (2026, 10, 25, 0, 31), (2026, 10, 25, 2), []),
        # Half an hour only.
        ("Australia/Lord_Howe", "15 2 * * *", (2026, 10, 3, 0), (2026, 10, 3, 15, 30, 1), [(2026, 10, 3, 15, 30)]),
        # A day that Samoa left out: both midnights are the same instant.
        ("Pacific/Apia", "0 0 * * *", (2011, 12, 29, 11), (2011, 12, 30, 10, 0, 1), [(2011, 12, 30, 10)]),
        ("UTC", "0 0 29 2 *", (2027, 12, 1), (2028, 2, 29, 0, 0, 1), [(2028, 2, 29)]),
    ],
)  # fmt: skip
def test_slots_follow_the_wall_clock(zone, line, since, now, expected):
    decision = decide(
        a_cron(line, zone, since=datetime(*since, tzinfo=UTC), last_slot=None, now=datetime(*now, tzinfo=UTC))
    )  # fmt: skip

    assert fired(decision) == [datetime(*slot, tzinfo=UTC) for slot in expected]


# What can't be followed


@pytest.mark.parametrize(
    "broken",
    [
        a_cron("0 0 30 2 *"),
        a_cron("0 0 * * *", "Mars/Olympus"),
        a_cron("no cron"),
        a_job(interval_type="Fortnights"),
        a_job(misfire_policy="perhaps"),
    ],
)
def test_a_schedule_that_makes_no_sense_raises(broken):
    with pytest.raises(Exception):
        decide(broken)


# Against an oracle that tries every minute

ORACLE_START = datetime(2026, 3, 1, tzinfo=UTC)
CRONS = {
    "*/7 * * * *": lambda t: t.minute % 7 == 0,
    "0 */3 * * *": lambda t: t.minute == 0 and t.hour % 3 == 0,
    "15,45 6-8 * * *": lambda t: t.minute in (15, 45) and 6 <= t.hour <= 8,
    "0 0 * * mon": lambda t: t.minute == t.hour == 0 and t.weekday() == 0,
}
minutes = st.integers(0, 3 * 1440)


@st.composite
def schedules(draw):
    """A job and whether a minute is a slot of it, without the code under test."""
    since = ORACLE_START + MINUTE * draw(minutes)
    end = draw(st.none() | st.integers(1, 3 * 1440).map(lambda n: since + n * MINUTE))
    within = draw(st.none() | st.integers(60, 90_000))
    more = dict(
        since=since, end_time=end or DEFAULT_END, misfire_within_seconds=within,
        misfire_policy="runOnce" if within else draw(st.sampled_from(["runOnce", "skip"])), last_slot=None,
    )  # fmt: skip
    kind = draw(st.sampled_from(["interval", "start", "cron", "once"]))
    if kind == "cron":
        line = draw(st.sampled_from(sorted(CRONS)))
        return a_cron(line, **more), CRONS[line]
    if kind == "once":
        start = max(since, ORACLE_START + MINUTE * draw(minutes))
        return a_job(**more | {"interval_type": "Once", "start_time": start}), lambda t: t == start
    length = draw(st.integers(3, 600))  # fewer than a day of minutes are due after any move
    start = since if kind == "interval" else ORACLE_START + MINUTE * draw(minutes)
    job = a_job(
        **more, interval_type="Minutes", interval_count=length,
        start_time=DEFAULT_START if kind == "interval" else start,
    )  # fmt: skip
    return job, lambda t: t >= start and (t - start) % (length * MINUTE) == timedelta(0)


def all_slots(job: ScheduledJob, is_slot, until: datetime) -> list[datetime]:
    found, minute = [], job.since
    while minute <= until and minute < job.end_time:
        if is_slot(minute):
            found.append(minute)
        minute += MINUTE
    return found


def latest_start(job: ScheduledJob, slot: datetime, follower: datetime | None) -> datetime:
    if job.misfire_within_seconds is not None:
        return slot + timedelta(seconds=job.misfire_within_seconds)
    once = job.interval_type == "Once" and job.cron is None
    most = MINUTE if job.misfire_policy == "skip" else DAY if once else HOUR
    return slot + (most if once or follower is None else min(most, (follower - slot) / 2))


@given(schedules(), st.lists(st.integers(-3 * 3600, 2 * 86_400), min_size=1, max_size=6))
def test_each_slot_is_decided_once_and_right_however_the_clock_moves(made, moves):
    job, is_slot = made
    rows: dict[datetime, str] = {}  # as the table `slot`, with its primary key
    now, seen = job.since, []
    horizon = job.since + DAY + SECOND * sum(max(move, 0) for move in moves)
    calendar = all_slots(replace(job, end_time=DEFAULT_END), is_slot, horizon)
    follower = dict(zip(calendar, calendar[1:], strict=False))

    for move in moves:
        now = max(now + move * SECOND, job.since - DAY)
        seen.append(now)
        last = max((slot for slot in rows if slot <= now), default=None)
        decision = decide(replace(job, now=now, last_slot=last))

        for slot in decision.slots:
            assert slot.at not in rows
            rows[slot.at] = slot.outcome
            in_time = now <= latest_start(job, slot.at, follower.get(slot.at))
            newest = slot.at == decision.slots[-1].at
            expected = ("fired" if newest else "coalesced") if in_time else "missed"
            assert slot.outcome == expected
        behind = [slot for slot in calendar if slot > now and slot < job.end_time]
        assert decision.next == (behind[0] if behind else None) or decision.next > horizon

    due = [slot for slot in calendar if slot <= max(seen) and slot < job.end_time]
    assert sorted(rows) == due
