"""`muster export`: an account, or a part of it, as the YAML that `muster apply` takes."""

import argparse
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.cli import lookup, names
from muster.cli.arguments import EXIT_CODES, Commands, Parser, at_place, command, of_account
from muster.cli.client import Api, Refused, calling
from muster.cli.declared.kinds import JOB, KINDS, Kind
from muster.cli.declared.plan import PARALLEL, current, exported
from muster.cli.exits import Exit
from muster.cli.typed import did_you_mean, plain

WORDS = {  # what names a kind: as in files, as on the command line, as in REST
    plain(word): kind for kind in KINDS.values() for word in (kind.name, kind.noun, kind.collection)
} | {plain(f"{kind.noun}s"): kind for kind in KINDS.values()}


def add(made: Parser) -> None:
    made.add_argument(
        "kind", metavar="KIND", nargs="?", help=f"{', '.join(KINDS)}; default: all of them"
    )
    made.add_argument("name", metavar="NAME", nargs="?", help="default: all of the kind")
    _add_options(made, "muster export --to account.yaml")


def add_of_job(verbs: Commands) -> None:
    """`muster job export`, which is `muster export job`."""
    made = command(verbs, "export", "print a job as the YAML that muster apply takes")
    made.add_argument("name", metavar="JOB")
    _add_options(made, f"{made.prog} nightly --to nightly.yaml")
    made.set_defaults(kind=JOB.name)


def _add_options(made: Parser, example: str) -> None:
    of_account(at_place(made))
    made.add_argument("--to", metavar="FILE", type=Path, help="default: stdout")
    made.add_argument("--replace", action="store_true", help="write over FILE")
    made.epilog = f"example:\n  {example}\n\n{EXIT_CODES}"
    made.set_defaults(run=export)


def export(options: argparse.Namespace) -> int:
    from muster.cli.declared import text  # late: it loads the YAML library

    def write(api: Api) -> int:
        if options.replace and options.to is None:
            raise Refused("--replace needs --to FILE")
        kinds = [_kind(options.kind)] if options.kind else list(KINDS.values())
        account = lookup.account(api, options)
        documents = [each for kind in kinds for each in _of_kind(api, account, kind, options.name)]
        written = "---\n".join(map(text.dump, documents))
        if options.to is None:
            print(written, end="")
            return Exit.SUCCEEDED
        try:
            with options.to.open("w" if options.replace else "x", encoding="utf-8") as file:
                file.write(written)
        except FileExistsError:
            raise Refused(f"{options.to} is there already; --replace writes over it") from None
        except OSError as error:
            raise Refused(f"{options.to} can't be written: {error}") from error
        return Exit.SUCCEEDED

    return calling(options, write)


def _kind(word: str) -> Kind:
    kind = WORDS.get(plain(word))
    if kind is None:
        near = did_you_mean(word, KINDS) or f"; there are: {', '.join(KINDS)}"
        raise Refused(f"there is no kind '{word}'{near}")
    return kind


def _of_kind(api: Api, account: str, kind: Kind, name: str | None) -> list[dict[str, Any]]:
    there = sorted((each["name"] for each in listed(api, account, kind)), key=str.lower)
    wanted = [each for each in there if name is None or each.lower() == name.lower()]
    if name is not None and not wanted:
        raise names.absent(kind.noun, name, there)
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = list(pool.map(lambda each: current(api, account, kind, each), wanted))
    return [with_secret(kind, exported(kind, each, account)) for each in found if each is not None]


def listed(api: Api, account: str, kind: Kind) -> list[dict[str, Any]]:
    """Those that can be read: an item without properties only lies above one that can."""
    return [each for each in api.all(f"{account}/{kind.collection}") if "properties" in each]


def with_secret(kind: Kind, document: dict[str, Any]) -> dict[str, Any]:
    """A secret is never shown: the file names the variable from which an apply to another account takes it."""
    if not kind.secret or "reference" in document:
        return document
    name = re.sub(r"[^A-Z0-9]", "_", document["name"].upper())
    return {**document, f"{kind.secret}Env": f"{kind.secret.upper()}_OF_{name}"}
