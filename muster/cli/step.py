"""`muster step …`: the steps of a job, in their order; each change makes a new version of the job."""

import argparse
from typing import Any

from muster.cli import deletes, inputs, job_view, lookup, names, output, step_options
from muster.cli.arguments import Parser, count, of_account, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

PROPERTIES = ("option", "value")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list the steps of a job, in their order"
    one = _of_job(verb(verbs, "list", list_steps, about, example="muster step list nightly"))
    about = "show a step: its options, as step update takes them, and its script"
    _of_step(verb(verbs, "show", show, about, example="muster step show nightly main"))
    example = "muster step add nightly report -g tenants -c 'analyze' --after main"
    one = _of_step(verb(verbs, "add", add_step, "add a step to a job", example=example))
    step_options.add(one)
    _add_place(one, "default: the last one")
    about = "change a step; what is not named stays"
    example = "muster step update nightly main --retry-attempts 3 --reset timeout"
    step_options.add_update(_of_step(verb(verbs, "update", update, about, example=example)))
    about = "remove a step; the others move up"
    one = _of_step(
        verb(verbs, "remove", remove, about, example="muster step remove nightly report --yes")
    )
    deletes.add(one)
    about = "move a step to another place; nothing else of the job changes"
    example = "muster step move nightly report --before main"
    _add_place(_of_step(verb(verbs, "move", move, about, example=example)), "1 is the first")


def _of_job(one: Parser) -> Parser:
    of_account(one).add_argument("job", metavar="JOB")
    return one


def _of_step(one: Parser) -> Parser:
    _of_job(one).add_argument("name", metavar="STEP")
    return one


def _add_place(one: Parser, default: str) -> None:
    place = one.add_mutually_exclusive_group()
    place.add_argument("--position", type=count, metavar="N", help=f"its number; {default}")
    place.add_argument("--before", metavar="STEP", help="its place is before this one")
    place.add_argument("--after", metavar="STEP", help="its place is after this one")


def list_steps(options: argparse.Namespace) -> int:
    def show_all(api: Api) -> int:
        _show_list(options, _steps(api, _job(api, options)))
        return Exit.SUCCEEDED

    return calling(options, show_all)


def show(options: argparse.Namespace) -> int:
    def show_one(api: Api) -> int:
        step = _find(_steps(api, _job(api, options)), options.name)
        properties = step["properties"]
        rows = [["position", properties["stepId"]], *map(list, step_options.described(properties))]
        script = properties["action"]["value"]
        if not output.is_for_people(options):
            rows.append(["script", script])
        output.show(options, step, Table(PROPERTIES, rows))
        if output.is_for_people(options):
            print("\n" + "\n".join(map(output.clean, script.splitlines())))
        return Exit.SUCCEEDED

    return calling(options, show_one)


def add_step(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        job = _job(api, options)
        properties = step_options.read(options, job.partition("/jobs/")[0])
        if (place := _place(options, _steps(api, job), None)) is not None:
            properties["stepId"] = place
        made = api.put(under(job, "steps", options.name), {"properties": properties}, new=True)
        _show_one(options, made)
        output.aside(inputs.refused_by_grammar(properties["action"]["value"]))
        return Exit.SUCCEEDED

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        job = _job(api, options)
        changed = step_options.changes(options, job.partition("/jobs/")[0])
        name = _find(_steps(api, job), options.name)["name"]
        made = api.patch(under(job, "steps", name), changed)
        _show_one(options, made)
        if "action" in changed["properties"]:
            output.aside(inputs.refused_by_grammar(changed["properties"]["action"]["value"]))
        return Exit.SUCCEEDED

    return calling(options, patch)


def remove(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        job = _job(api, options)
        name = _find(_steps(api, job), options.name)["name"]
        deletes.agreed(options, f"the step '{name}' of the job '{options.job}'")
        return deletes.done(api, options, under(job, "steps", name), name)

    return calling(options, gone)


def move(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        job = _job(api, options)
        steps = _steps(api, job)
        step = _find(steps, options.name)
        place = _place(options, steps, step["properties"]["stepId"])
        if place is None:
            raise Refused("say where to: --position, --before or --after")
        api.patch(under(job, "steps", step["name"]), {"properties": {"stepId": place}})
        _show_list(options, _steps(api, job))
        return Exit.SUCCEEDED

    return calling(options, patch)


def _job(api: Api, options: argparse.Namespace) -> str:
    return under(lookup.account(api, options), "jobs", options.job)


def _steps(api: Api, job: str) -> list[dict[str, Any]]:
    return api.all(f"{job}/steps")


def _find(steps: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for each in steps:
        if each["name"].lower() == name.lower():
            return each
    raise names.absent("step", name, [each["name"] for each in steps])


def _place(
    options: argparse.Namespace, steps: list[dict[str, Any]], current: int | None
) -> int | None:
    """The number that it gets; one that moves down is not in the way of those above any longer."""
    if options.position is not None:
        position: int = options.position
        return position
    if not (options.before or options.after):
        return None
    other: int = _find(steps, options.before or options.after)["properties"]["stepId"]
    if other == current:
        raise Refused(f"'{options.name}' can't be placed before or after itself")
    place = other if options.before else other + 1
    return place - 1 if current is not None and current < place else place


def _show_one(options: argparse.Namespace, step: dict[str, Any]) -> None:
    output.show(
        options, step, Table(job_view.STEP, [job_view.step_row(step)], optional=("credential",))
    )


def _show_list(options: argparse.Namespace, steps: list[dict[str, Any]]) -> None:
    rows = [job_view.step_row(each) for each in steps]
    output.show(options, {"value": steps}, Table(job_view.STEP, rows, optional=("credential",)))
