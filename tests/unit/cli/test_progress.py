"""How a run is drawn."""

import io

import pytest

from muster.cli import progress
from muster.cli.output import measure
from muster.cli.runs import Run
from tests.unit.cli.conftest import Terminal
from tests.unit.cli.fake_rest import RUN, a_cause, a_summary, a_target

HERE = Run(RUN)
HALF = a_summary(
    "WaitingForChildJobExecutions",
    Succeeded=30, InProgress=6, WaitingForRetry=1, Created=22, Failed=1,
    ratePerSecond=5.23, etaSeconds=125.0,
)  # fmt: skip
RUNNING = [a_target(f"tenant_{n}", "InProgress") for n in range(4)]
CAUSES = [
    a_cause("42703", 1, 'column "quantity" does not exist'),
    a_cause("55P03", 1, "lock timeout", retrying=1),
]


def test_the_block_tells_bar_counts_rate_eta_running_and_failed():
    told = progress.block(HERE, HALF, RUNNING, CAUSES, 100)

    assert told == [
        "nightly 3f2a1c9e  running",
        "█" * 20 + "░" * 20 + "  31/60   52%  5.2/s  ETA 2 min 05 s",
        "Succeeded 30 · running 6 · WaitingForRetry 1 · Created 22 · Failed 1",
        "running  fleet-1/tenant_0, fleet-1/tenant_1, fleet-1/tenant_2, fleet-1/tenant_3, … 2 more",
        'failed    1 × 42703 column "quantity" does not exist (fleet-1/tenant_07)',
        "retrying  1 × 55P03 lock timeout (fleet-1/tenant_07)",
    ]


@pytest.mark.parametrize("width", [20, 40, 79])
def test_the_block_fits_the_terminal(width):
    told = progress.block(HERE, HALF, RUNNING, CAUSES, width)

    assert max(measure(line) for line in told) <= max(width, 40)
    assert all(measure(line) <= width for line in told if "░" not in line)


def test_a_run_without_targets_yet_has_an_empty_bar():
    told = progress.block(HERE, a_summary("Created"), [], [], 80)

    assert told[1:] == ["░" * 40 + "  0/0    0%", "no targets yet"]


def test_the_block_is_drawn_over_itself_and_nothing_of_it_stays():
    stream = Terminal()
    show = progress.chosen(HERE, stream)

    show.update(HALF, RUNNING, CAUSES)
    first = stream.getvalue()
    show.update(a_summary("Succeeded", Succeeded=60), [], [])

    assert "\x1b" not in first and first.count("\n") == 6
    assert stream.getvalue()[len(first) :].startswith("\x1b[6A\r\x1b[J")


def test_a_log_gets_one_line_for_each_change():
    stream = io.StringIO()
    show = progress.chosen(HERE, stream)

    for summary in (
        a_summary("Created"),
        HALF,
        HALF | {"etaSeconds": 3.0},
        a_summary("Failed", Failed=60),
    ):
        show.update(summary, [], [])

    assert stream.getvalue().splitlines() == [
        "nightly 3f2a1c9e Created 0/0",
        "nightly 3f2a1c9e running 31/60 Succeeded=30 running=6 WaitingForRetry=1 Created=22 Failed=1",
        "nightly 3f2a1c9e Failed 60/60 Failed=60",
    ]


def test_a_dumb_terminal_gets_lines_and_an_old_one_another_bar(monkeypatch):
    stream = Terminal()
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress.chosen(HERE, stream), progress.Lines)

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(Terminal, "encoding", "ascii")
    progress.chosen(HERE, stream).update(HALF, [], [])
    assert "####" in stream.getvalue() and "█" not in stream.getvalue()


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (3600, "1 h 00 min"), (7500, "2 h 05 min")],
)
def test_spans_are_read_by_people(seconds, expected):
    assert progress.span(seconds) == expected


def test_steps_ahead_and_what_holds_the_run_are_drawn():
    summary = a_summary(
        "InProgress", Succeeded=1, Created=1, stepCount=3, waitReason="AccountPaused"
    )

    told = progress.block(HERE, summary, [], [], 100)

    assert told[1].endswith("1/2   50%  step 1 of 3") and told[-1] == "waits    AccountPaused"


def test_executions_of_several_steps_are_not_called_targets():
    steps = [{"stepName": name} for name in ("a", "b")]

    told = progress.sentence(a_summary("Failed", Succeeded=3, Failed=1, steps=steps))

    assert told == "3 of 4 target executions succeeded, 1 failed."
