"""Waits for a run and shows its progress; Ctrl-C never affects the run."""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from muster.cli import exits, output, progress
from muster.cli.client import Api, Refused
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.progress import MOST_NAMED, Show
from muster.cli.runs import Run

SHORTEST, LONGEST = 0.5, 5.0  # seconds between two looks: a long run is looked at less often
PACE = ("ratePerSecond", "etaSeconds")  # they change while nothing else does
LOOKS = 40  # the pause is a fortieth of the time that has passed

Names: TypeAlias = tuple[list[dict[str, Any]], list[dict[str, Any]]]  # what runs, what failed

sleep = time.sleep
monotonic = time.monotonic


def has_come_to_rest(summary: dict[str, Any]) -> bool:
    return exits.is_over(summary) or exits.is_halted(summary)


def follow(
    api: Api,
    run: Run,
    show: Show,
    *,
    timeout: float | None = None,
    until: Callable[[dict[str, Any]], bool] = has_come_to_rest,
) -> dict[str, Any]:
    """The summary once `until` holds for it."""
    began = monotonic()
    names: Names = ([], [])
    summary: dict[str, Any] = {}
    while True:
        newest = (api.get if show.wants_names else api.latest)(f"{run.path}/summary")
        if newest is not summary:
            if show.wants_names and _without_pace(newest) != _without_pace(summary):
                names = _names(api, run, newest)
            summary = newest
            show.update(summary, *names)
        if until(summary):
            return summary
        passed = monotonic() - began
        if timeout is not None and passed >= timeout:
            raise Refused(
                f"the run {run} has not finished after {timeout:g} s and continues",
                Exit.WAIT_TIMED_OUT,
            )
        sleep(min(max(SHORTEST, passed / LOOKS), LONGEST))


def ended(api: Api, run: Run, show: Show, *, timeout: float | None = None) -> dict[str, Any] | None:
    """As `follow`; None when the user went away."""
    try:
        return follow(api, run, show, timeout=timeout)
    except KeyboardInterrupt:
        print(
            f"\nThe run continues. muster run watch {run.id} shows it again, "
            f"muster run cancel {run.id} stops it.",
            file=sys.stderr,
        )
        return None


def watched(api: Api, run: Run, options: argparse.Namespace) -> Exit:
    """Draws the run until it ends, then prints it in the requested format."""
    people = output.is_for_people(options)
    show = progress.chosen(run, sys.stdout if people else sys.stderr)
    summary = ended(api, run, show, timeout=options.timeout)
    if summary is not None:
        tell(options, run, summary)
    return outcome(summary)


def tell(options: argparse.Namespace, run: Run, summary: dict[str, Any]) -> None:
    """The end of a run: one sentence for people, the summary for scripts."""
    if not output.is_for_people(options):
        row = [run.job, run.id, summary["lifecycle"], summary.get("done"), summary.get("total")]
        output.show(options, summary, Table(("job", "run", "lifecycle", "done", "total"), [row]))
        return
    print(
        output.clean(
            f"{run} {output.lifecycle(summary['lifecycle'])}. {progress.sentence(summary)}"
        )
    )
    if outcome(summary) not in {Exit.SUCCEEDED, Exit.CANCELED}:
        print(f"muster run errors {run.id} lists the causes.")
        if exits.is_over(summary) and any(
            summary["counts"].get(each) for each in ("Failed", "TimedOut")
        ):
            print(f"muster run rerun {run.id} --failed runs the job again on those targets.")
    if exits.waits_for_user(summary):
        print(output.clean(str(summary.get("lastMessage") or "")))
        print(f"muster run resume {run.id} goes on, muster run abort {run.id} ends it.")


def outcome(summary: dict[str, Any] | None) -> Exit:
    return Exit.INTERRUPTED if summary is None else exits.of_run(summary)


def _without_pace(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name not in PACE}


def _names(api: Api, run: Run, summary: dict[str, Any]) -> Names:
    counts = summary.get("counts", {})
    running: list[dict[str, Any]] = []
    if counts.get("InProgress"):
        query = {"lifecycle": "InProgress", "$top": MOST_NAMED}
        running = api.get(f"{run.path}/targets", query)["value"]
    causes: list[dict[str, Any]] = []
    if any(counts.get(each) for each in ("Failed", "TimedOut", "WaitingForRetry")):
        causes = api.get(f"{run.path}/errors", {"$top": MOST_NAMED})["value"]
    return running, causes
