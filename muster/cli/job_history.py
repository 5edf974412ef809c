"""`muster job history|next-runs|versions`: what a job did, will do, and was."""

import argparse

from muster.cli import job_view, lookup, output, run_list
from muster.cli.arguments import Commands, count, of_account, verb
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

VERSIONS = ("version", "created", "by")


def add(verbs: Commands) -> None:
    about = "list the runs of a job, the newest first"
    example = "muster job history nightly --since 7d"
    one = of_account(verb(verbs, "history", history, about, example=example))
    one.add_argument("job", metavar="JOB")
    run_list.add(one)
    about = "list the times at which the schedule of a job will start it"
    example = "muster job next-runs nightly --top 3"
    one = of_account(verb(verbs, "next-runs", next_runs, about, example=example))
    one.add_argument("name", metavar="JOB")
    one.add_argument("--top", type=count, default=10, metavar="N", help="default: 10")
    about = "list the versions of a job, the newest first, or the steps that one of them has"
    example = "muster job versions nightly 3"
    one = of_account(verb(verbs, "versions", versions, about, example=example))
    one.add_argument("name", metavar="JOB")
    one.add_argument("version", metavar="VERSION", nargs="?", type=count, help="its steps")


def history(options: argparse.Namespace) -> int:
    return calling(options, lambda api: run_list.show(api, options, options.job))


def next_runs(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        path = under(lookup.account(api, options), "jobs", options.name, "nextRuns")
        times = api.get(path, {"$top": options.top or None})["value"]
        rows = [[moment(each["time"])] for each in times]
        none = [] if times else [f"Nothing will start it: muster job show {options.name} says why."]
        output.show(options, {"value": times}, Table(("time",), rows), notes=none)
        return Exit.SUCCEEDED

    return calling(options, show)


def versions(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        path = under(lookup.account(api, options), "jobs", options.name, "versions")
        if options.version is not None:
            steps = api.all(under(path, str(options.version), "steps"))
            rows = [job_view.step_row(each) for each in steps]
            output.show(
                options, {"value": steps}, Table(job_view.STEP, rows, optional=("credential",))
            )
            return Exit.SUCCEEDED
        items = api.all(path)
        rows = [
            [
                int(each["name"]),
                moment(each["systemData"]["createdAt"]),
                each["systemData"]["createdBy"],
            ]
            for each in items
        ]
        output.show(options, {"value": items}, Table(VERSIONS, rows))
        return Exit.SUCCEEDED

    return calling(options, show)
