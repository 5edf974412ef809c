"""`muster exec`: one script on a group or on named targets, now, with one table as the answer."""

import argparse
import sys
from typing import Any

from muster.cli import (
    causes,
    command_tags,
    group,
    inputs,
    lookup,
    output,
    progress,
    result_files,
    results,
    run_targets,
    run_watch,
    runs,
)
from muster.cli.arguments import Parser, calls_api, count, duration, of_account
from muster.cli.client import Api, Refused, calling
from muster.cli.exits import Exit
from muster.cli.known import Lookup
from muster.cli.notices import beside
from muster.cli.progress import MOST_NAMED
from muster.cli.runs import Run

MOST_ROWS = 1000


def add(made: Parser) -> None:
    example = "muster exec -g tenants -c 'select count(*) from orders'"
    one = of_account(calls_api(made, execute, example=example, of_rows=True))
    one.add_argument("-g", "--group", help="the targets; or --target, --server")
    run_targets.add(one)
    inputs.add_script(one)
    one.add_argument("--write", action="store_true", help="commit; asks with the number of targets")
    one.add_argument("--yes", action="store_true", help="do not ask; needs --expect-targets")
    one.add_argument(
        "--expect-targets", type=count, metavar="N", help="refuse when it is another number"
    )
    one.add_argument("--timeout", type=duration, default=60, help="of each target; default: 60")
    one.add_argument(
        "--credential",
        metavar="NAME",
        help="credential; default: that of the group, server or account",
    )
    one.add_argument(
        "--max-rows", type=count, metavar="N", help="kept of each target; default and most: 1000"
    )
    one.add_argument("--head", type=count, metavar="N", help="for people: only the first N rows")


def execute(options: argparse.Namespace) -> int:
    def run_it(api: Api) -> int:
        account = lookup.account(api, options)
        sql = inputs.script(options)
        if (options.max_rows or 0) > MOST_ROWS:
            raise Refused(f"--max-rows is at most {MOST_ROWS}: more are not kept of a result set")
        chosen = run_targets.chosen(options)
        if ("targets" in chosen) == (options.group is not None):
            raise Refused("name the targets by --group, or by --target or --server")
        if options.write or options.expect_targets is not None:
            _agree(options, _resolution(api, account, options, chosen))
        made = api.post(f"{account}/queries", _body(options, sql) | chosen)
        run = runs.of_item(account, made)
        return _follow(api, run, options, sql)

    return calling(options, run_it)


def _resolution(
    api: Api, account: str, options: argparse.Namespace, chosen: dict[str, Any]
) -> dict[str, Any]:
    """What the query would visit."""
    targets = chosen.get("targets")
    if targets is None:
        resolution = group.resolved(api, account, options.group)
    else:
        resolution = run_targets.counted(targets)
    limit = chosen.get("limit", resolution["count"])
    return resolution | {
        "count": min(resolution["count"], limit),
        "targets": resolution["targets"][:limit],
    }


def _agree(options: argparse.Namespace, resolution: dict[str, Any]) -> None:
    """Nothing is written before the user has confirmed the number of targets."""
    number, expected = resolution["count"], options.expect_targets
    have = "the group has" if options.group else "the command names"
    if expected is not None and resolution.get("unreachable"):
        away = f"{_listed(resolution)}, and servers whose databases could not be listed: {_away(resolution)}"
        raise Refused(f"{_expected(expected)}, {have} {away}; nothing was run")
    if expected is not None and (missing := resolution.get("missing")):
        gone = output.clean(", ".join(runs.name(each) for each in missing[:MOST_NAMED]))
        raise Refused(f"the group names databases that do not exist: {gone}; nothing was run")
    if expected is not None and expected != number:
        raise Refused(f"{_expected(expected)}, {have} {number}: nothing was run")
    if not options.write:
        return
    if options.yes:
        if expected is None:
            raise Refused(f"--yes needs --expect-targets; {have} {output.many(number, 'target')}")
        return
    if not inputs.can_ask():
        raise Refused(f"writing without a terminal needs --yes --expect-targets N; {have} {number}")
    print(f"{group.counted(resolution)} {_by_server(resolution)}", file=sys.stderr)
    if resolution.get("unreachable"):
        print(f"Not listed, so not visited: {_away(resolution)}", file=sys.stderr)
    if not inputs.agrees(f"Run it on {output.many(number, 'target')} and commit?"):
        raise Refused("nothing was run")


def _expected(number: int) -> str:
    return f"{output.many(number, 'target')} {'was' if number == 1 else 'were'} expected"


def _listed(resolution: dict[str, Any]) -> str:
    return output.many(resolution["count"], "target") if resolution["count"] else "none"


def _away(resolution: dict[str, Any]) -> str:
    """Servers and databases that were not listed, and why; the first few, for a fleet may have many."""
    away = resolution["unreachable"]
    names = [f"{runs.name(each)} ({each['message'].rstrip('.')})" for each in away[:MOST_NAMED]]
    more = len(away) - MOST_NAMED
    return output.clean(", ".join([*names, *([f"{more} more"] if more > 0 else [])]))


def _by_server(resolution: dict[str, Any]) -> str:
    counts: dict[str, int] = {}
    for each in resolution["targets"]:
        counts[each["serverName"]] = counts.get(each["serverName"], 0) + 1
    return ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))


def _body(options: argparse.Namespace, sql: str) -> dict[str, Any]:
    body = {
        "targetGroup": options.group,
        "sql": sql,
        "readOnly": not options.write,
        "timeoutSeconds": options.timeout,
        "maxRows": options.max_rows,
        "credential": options.credential,
    }
    return {name: value for name, value in body.items() if value is not None}


def _follow(api: Api, run: Run, options: argparse.Namespace, sql: str) -> int:
    """Ctrl-C cancels the run, as in psql."""
    show = progress.chosen(run, sys.stderr) if sys.stderr.isatty() else progress.Silent()
    try:
        summary = run_watch.follow(api, run, show)
    except KeyboardInterrupt:
        api.post(f"{run.path}/cancel", {"reason": "Ctrl-C in muster exec"})
        print(
            f"\nCancelled; what had committed stays. muster run show {run.id} shows it.",
            file=sys.stderr,
        )
        return Exit.CANCELED
    _show(api, run, summary, options, sql)
    return run_watch.outcome(summary)


def _show(
    api: Api, run: Run, summary: dict[str, Any], options: argparse.Namespace, sql: str
) -> None:
    wrong = causes.read(api, run, summary) if run_watch.outcome(summary) else []
    failed, lookup = [], Lookup(api, run, options.group, options.credential)
    for each in wrong:
        failed += [f"failed: {progress.cause(each)}", *causes.advised(run, each, lookup)]
    if wrong:
        failed.append(f"{causes.total(wrong, summary)} muster run errors {run.id} shows more.")
    begun = bool(summary["steps"])
    read = results.first if result_files.is_file(options) else results.read
    page = read(api, run) if begun else results.NONE
    changes = command_tags.read(api, run) if begun and options.write else []
    more = results.further(api, run, page) if _has_several(sql) else []
    notes, warnings = [progress.sentence(summary)], [*more, *failed]
    results.show(api, run, options, page, changes, notes=notes, warnings=warnings)
    if begun:
        output.aside(beside(api, run))


def _has_several(sql: str) -> bool:
    """Only then it is worth asking for a second result set."""
    return ";" in sql.strip().rstrip(";")
