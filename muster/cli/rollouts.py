"""Rollouts on the command line: waves of a step, and what an operator decides about a run."""

import argparse

from muster.cli import output
from muster.cli.client import Api
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.runs import Run


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
