"""`muster run …`: shows runs, waits for them and cancels them."""

import argparse
from typing import Any

from muster.cli import (
    causes,
    command_tags,
    events,
    lookup,
    notices,
    output,
    progress,
    reruns,
    result_files,
    results,
    retries,
    rollouts,
    run_attempts,
    run_list,
    run_origin,
    run_target_list,
    run_watch,
    runs,
)
from muster.cli.arguments import (
    Command,
    Commands,
    Parser,
    count,
    duration,
    of_account,
    verb,
    verbs_of,
)
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit, is_over
from muster.cli.known import Lookup
from muster.cli.output import Table, when
from muster.cli.runs import Run

RUN = "id, its unique beginning, JOB/beginning, or JOB: its newest run"
STEPS = (
    "step",
    "name",
    "lifecycle",
    "done",
    "total",
    "failed",
    "duration",
    "rows",
    "wave",
    "reason",
    "message",
)
MESSAGES = (
    "step",
    "server",
    "database",
    "schema",
    "attempt",
    "severity",
    "sqlstate",
    "message",
)
TARGET = "SERVER/DATABASE[/SCHEMA], DATABASE or targetId"
EXAMPLES = {
    "show": "nightly",
    "watch": "nightly",
    "wait": "nightly --timeout 2h",
    "why": "nightly eu1/tenant_7",
    "cancel": "nightly --reason 'wrong script'",
    "rerun": "nightly",
    "retry": "nightly --target eu1/tenant_7",
    "resume": "nightly",
    "abort": "nightly",
    "attempts": "nightly",
    "events": "nightly --follow",
    "errors": "nightly",
    "results": "nightly -o csv",
    "messages": "nightly",
}


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    example = "muster run list --active --since 2h"
    one = of_account(verb(verbs, "list", list_runs, "list runs, the newest first", example=example))
    one.add_argument("job", metavar="JOB", nargs="?", help="only those of this job")
    one.add_argument("--job", dest="of_job", metavar="JOB", help="the same")
    run_list.add(one)
    one = _of_run(_verb(verbs, "show", show_run, "show a run and its steps"))
    one.add_argument("--targets", action="store_true", help="its targets instead of its steps")
    run_target_list.add_filters(one)
    one = _of_run(_verb(verbs, "watch", watch, "show the progress of a run until it finishes"))
    one.add_argument("--timeout", type=duration, help="at most so long: 90, 15m, 2h")
    one = _of_run(_verb(verbs, "wait", wait, "wait without output until a run finishes"))
    one.add_argument("--timeout", type=duration, help="at most so long: 90, 15m, 2h")
    one = _of_run(_verb(verbs, "why", why, "show what a run, or one of its targets, waits for"))
    one.add_argument("target", metavar="TARGET", nargs="?", help=TARGET)
    one.add_argument("--step", metavar="NAME")
    one = _of_run(_verb(verbs, "cancel", cancel, "cancel a run, a step of it or one target"))
    one.add_argument("--step", metavar="NAME")
    one.add_argument("--target", metavar="TARGET", help=TARGET)
    one.add_argument("--reason", help="kept with the cancellation")
    one = _of_run(_verb(verbs, "rerun", rerun, "run a job again on targets of an earlier run"))
    reruns.add(one, TARGET)
    about = "retry targets that ended without success in a run that goes on"
    retries.add(_of_run(_verb(verbs, "retry", retry, about)), TARGET)
    about = "go on with a halted run, or start the next wave of one that waits for it"
    one = _of_run(_verb(verbs, "resume", resume, about))
    one.add_argument("--wait", action="store_true", help="watch the run and exit with its result")
    one.add_argument("--timeout", type=duration, help="wait at most so long: 90, 15m, 2h")
    _of_run(_verb(verbs, "abort", abort, "end a run that is halted or waits for its next wave"))
    about = "list the targets of a run"
    example = "muster run targets nightly --lifecycle failed"
    one = _of_run(verb(verbs, "targets", list_targets, about, example=example))
    one.add_argument("--active", action="store_true", help="only those that have not finished")
    one.add_argument(
        "--fingerprint", metavar="ERROR", help="with this error, of -o json of run errors"
    )
    one.add_argument("--step", metavar="NAME", help="only of this step")
    run_target_list.add_filters(one)
    _of_run(_verb(verbs, "attempts", attempts, "list the attempts of a run"))
    events.add_options(_of_run(_verb(verbs, "events", events.of_run, "list the events of a run")))
    _of_run(_verb(verbs, "errors", errors, "list what went wrong, one line for each cause"))
    one = _of_run(
        _verb(verbs, "results", show_results, "join the results of all targets", of_rows=True)
    )
    one.add_argument("--step", metavar="NAME", help="needed when the run has several")
    one.add_argument(
        "--set", type=count, default=1, metavar="N", help="which result set; default: 1"
    )
    one.add_argument("--head", type=count, metavar="N", help="for people: only the first N rows")
    one = _of_run(
        _verb(verbs, "messages", messages, "list the notices and warnings of its targets")
    )
    one.add_argument("--step", metavar="NAME", help="only of this step")


def list_runs(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        if options.job and options.of_job:
            raise Refused("either JOB or --job JOB")
        return run_list.show(api, options, options.job or options.of_job)

    return calling(options, show)


def show_run(options: argparse.Namespace) -> int:
    def show(api: Api, run: Run) -> int:
        if options.targets or run_target_list.is_filtered(options):
            return run_target_list.show(api, run, options)
        summary = api.get(f"{run.path}/summary")
        if output.is_for_people(options):
            print("\n".join(map(output.clean, _head(run, summary))) + "\n")
        rows = [_step(each) for each in summary["steps"]]
        table = Table(STEPS, rows, optional=("duration", "rows", "wave", "reason"))
        output.show(options, summary, table)
        return Exit.SUCCEEDED

    return _on_run(options, show)


def list_targets(options: argparse.Namespace) -> int:
    return _on_run(options, lambda api, run: run_target_list.show(api, run, options))


def watch(options: argparse.Namespace) -> int:
    return _on_run(options, lambda api, run: run_watch.watched(api, run, options))


def wait(options: argparse.Namespace) -> int:
    def until(api: Api, run: Run) -> int:
        summary = run_watch.ended(api, run, progress.Silent(), timeout=options.timeout)
        if summary is not None:
            run_watch.tell(options, run, summary)
        return run_watch.outcome(summary)

    return _on_run(options, until)


def why(options: argparse.Namespace) -> int:
    def ask(api: Api, run: Run) -> int:
        if options.target is None:
            return causes.why_run(api, run, options)
        item = runs.target(api, run, options.target, options.step)
        return causes.why_target(api, run, item, options)

    return _on_run(options, ask)


def cancel(options: argparse.Namespace) -> int:
    def post(api: Api, run: Run) -> int:
        path, what = run.path, str(run)
        if options.target:
            item = runs.target(api, run, options.target, options.step)
            path, what = runs.target_path(run, item), f"{run} at {runs.name(item)}"
        elif options.step:
            path, what = under(run.path, "steps", options.step), f"{run}, step {options.step}"
        api.post(f"{path}/cancel", {"reason": options.reason} if options.reason else None)
        document = {"cancelRequested": path}
        row = [run.job, run.id, options.step, options.target]
        if output.is_for_people(options):
            print(output.clean(f"Cancellation of {what} is requested."))
        else:
            output.show(options, document, Table(("job", "run", "step", "target"), [row]))
        return Exit.SUCCEEDED

    return _on_run(options, post)


def rerun(options: argparse.Namespace) -> int:
    return _on_run(options, lambda api, run: reruns.rerun(api, run, options))


def retry(options: argparse.Namespace) -> int:
    return _on_run(options, lambda api, run: retries.retry(api, run, options))


def resume(options: argparse.Namespace) -> int:
    def go_on(api: Api, run: Run) -> int:
        if not options.wait:
            return rollouts.resume(api, run, options)
        api.post(f"{run.path}/resume")
        return run_watch.watched(api, run, options)

    return _on_run(options, go_on)


def abort(options: argparse.Namespace) -> int:
    return _on_run(options, lambda api, run: rollouts.abort(api, run, options))


def attempts(options: argparse.Namespace) -> int:
    return _on_run(options, lambda api, run: run_attempts.show(api, run, options))


def errors(options: argparse.Namespace) -> int:
    def show(api: Api, run: Run) -> int:
        summary = api.get(f"{run.path}/summary")
        causes_ = causes.read(api, run, summary)
        table = causes.table(run, causes_, summary, Lookup(api, run))
        notes = causes.notes(run, causes_, summary)
        output.show(options, {"value": causes_}, table, notes=notes)
        return Exit.SUCCEEDED

    return _on_run(options, show)


def show_results(options: argparse.Namespace) -> int:
    def show(api: Api, run: Run) -> int:
        if options.set < 1:
            raise Refused("result sets are numbered from 1 on")
        read = results.first if result_files.is_file(options) else results.read
        page = read(api, run, step=options.step, set=options.set)
        if not results.is_table(page) and options.set > 1:
            last = results.last_before(api, run, options.step, options.set)
            raise Refused(f"there is no result set {options.set}: {_sets(last)}", Exit.NOT_FOUND)
        changes = command_tags.read(api, run, options.step)
        notes = results.further(api, run, page) if output.is_for_people(options) else []
        results.show(api, run, options, page, changes, notes=notes)
        output.aside(notices.beside(api, run, options.step))
        if not page["targets"]:
            output.aside([_none(run, api.get(f"{run.path}/summary"))])
        return Exit.SUCCEEDED

    return _on_run(options, show)


def messages(options: argparse.Namespace) -> int:
    def show(api: Api, run: Run) -> int:
        messages_ = notices.read(api, run, options.step)
        table = Table(MESSAGES, notices.rows(messages_), optional=("schema", "sqlstate"))
        none = [] if messages_ else ["No target sent a notice."]
        output.show(options, {"value": messages_}, table, notes=none)
        return Exit.SUCCEEDED

    return _on_run(options, show)


def _sets(last: int) -> str:
    return f"the last one is {last}" if last else "no target returned rows"


def _none(run: Run, summary: dict[str, Any]) -> str:
    """Why there is nothing to join, and where to look."""
    if not is_over(summary):
        return f"No target has succeeded yet. muster run watch {run.id} waits for the end."
    if run_watch.outcome(summary) is Exit.CANCELED:
        return (
            f"No target has succeeded: {summary['lifecycle']}. muster run show {run.id} shows more."
        )
    return f"No target has succeeded. muster run errors {run.id} lists the causes."


def _verb(verbs: Commands, name: str, run: Command, about: str, *, of_rows: bool = False) -> Parser:
    example = f"muster run {name} {EXAMPLES[name]}"
    return verb(verbs, name, run, about, example=example, of_rows=of_rows)


def _of_run(made: Parser) -> Parser:
    made.add_argument("name", metavar="RUN", help=RUN)
    return of_account(made)


def _on_run(options: argparse.Namespace, what: "causes.OnRun") -> int:
    def found(api: Api) -> int:
        return what(api, runs.find(api, lookup.account(api, options), options.name))

    return calling(options, found)


def _head(run: Run, summary: dict[str, Any]) -> list[str]:
    times = ", ".join(
        f"{word} {when(summary[key])}"
        for word, key in (("created", "createTime"), ("started", "startTime"), ("ended", "endTime"))
        if summary.get(key)
    )
    lines = [f"{run.job} {run.id}: {output.lifecycle(summary['lifecycle'])}"]
    took = [f"took {text}" for text in [progress.took(summary)] if text]
    rows = summary.get("rowsAffected")
    affected = [] if rows is None else [f"{output.many(rows, 'row')} affected"]
    begun = (*run_origin.begun(summary), *run_origin.followed(summary))
    lines += [f"  {line}" for line in (*begun, ", ".join([times, *took, *affected]))]
    reason = run_origin.reason(summary)
    lines += [f"  {reason}"] if reason else []
    lines += [f"  {summary['lastMessage']}"] if summary.get("lastMessage") else []
    lines += [f"  {line}" for line in run_origin.stopped(summary)]
    if summary.get("attempt"):
        lines.append(
            f"  attempt {summary['attempt']}: muster run attempts {run.short} lists them all"
        )
    return [*lines, f"  {progress.counted(summary)}"]


def _step(step: dict[str, Any]) -> list[Any]:
    counts = step.get("counts", {})
    return [
        step["stepId"],
        step["stepName"],
        step["lifecycle"],
        step.get("done", 0),
        step.get("total", 0),
        counts.get("Failed", 0) + counts.get("TimedOut", 0),
        progress.took(step),
        step.get("rowsAffected"),
        f"{step['wave']} of {step['waves']}" if step.get("waves", 1) > 1 else None,
        step.get("endReason") or step.get("waitReason"),
        step.get("lastMessage"),
    ]
