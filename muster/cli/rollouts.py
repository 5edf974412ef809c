"""Rollouts on the command line: options of a step, and what an operator decides about a run."""

import argparse
from typing import Any

from muster.cli import output
from muster.cli.arguments import Parser, duration
from muster.cli.client import Api, Refused
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.runs import Run


def add(parser: Parser) -> None:
    parser.add_argument(
        "--waves",
        type=waves,
        metavar="LIST",
        help="how many targets have started with each wave, such as 1,5%%,100%%; the rest follows in a last wave",
    )
    parser.add_argument(
        "--halt-after",
        type=count_or_percent,
        metavar="N|P%",
        help="with --waves: halt when so many targets have failed; default: 1",
    )
    parser.add_argument(
        "--pause-between", type=duration, help="with --waves: pause after each wave: 90, 15m, 2h"
    )
    parser.add_argument(
        "--gate",
        choices=("auto", "manual"),
        help="with --waves; manual: each further wave waits for `muster run resume`",
    )
    parser.add_argument(
        "--order-by",
        metavar="ORDER",
        help="with --waves: the name of a label, or random(SEED); default: by name",
    )


def read(options: argparse.Namespace) -> dict[str, Any] | None:
    """The rollout of a step; None when there is none."""
    pause = options.pause_between
    values = {
        "haltAfterFailures": options.halt_after,
        "pauseBetween": None if pause is None else f"PT{round(pause)}S",
        "gate": options.gate,
        "orderBy": options.order_by,
    }
    values = {name: value for name, value in values.items() if value is not None}
    if options.waves is None:
        if values:
            raise Refused("--halt-after, --pause-between, --gate and --order-by need --waves")
        return None
    return {"waves": options.waves, **values}


def waves(text: str) -> list[int | str]:
    return [count_or_percent(part) for part in text.split(",")]


def count_or_percent(text: str) -> int | str:
    word = text.strip()
    if word.endswith("%"):
        return word
    if word.isascii() and word.isdigit():
        return int(word)
    raise argparse.ArgumentTypeError(f"'{text}' is neither a count nor a percentage such as 5%")


def resume(api: Api, run: Run, options: argparse.Namespace) -> int:
    return _continue(api, run, options, "resume", f"{run} goes on.")


def abort(api: Api, run: Run, options: argparse.Namespace) -> int:
    sentence = f"{run} is aborted: targets that have not started end as Canceled."
    return _continue(api, run, options, "abort", sentence)


def _continue(api: Api, run: Run, options: argparse.Namespace, action: str, sentence: str) -> int:
    item = api.post(f"{run.path}/{action}")
    if output.is_for_people(options):
        print(output.clean(sentence))
    else:
        row = [run.job, run.id, item["properties"]["lifecycle"]]
        output.show(options, item, Table(("job", "run", "lifecycle"), [row]))
    return Exit.SUCCEEDED
