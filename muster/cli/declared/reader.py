"""Reads YAML files strictly: everything that is wrong is told, with file, line, field and what would be right."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from muster.cli.client import Refused
from muster.cli.declared.checker import Checker
from muster.cli.declared.document import Document, Wrong

SUFFIXES = {".yaml", ".yml"}


class Loader(yaml.SafeLoader):
    """Booleans are true and false, numbers decimal; what else is not quoted is a text: `on`, 007, 12:30, a date."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - as the parent has it


for tag, form, first in (
    ("bool", r"true|false", "tf"),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
    ("null", r"~|null|", ["~", "n", ""]),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{form})\Z"), first)


def read(sources: Sequence[str]) -> list[Document]:
    """Of files, folders and stdin (`-`); raises Wrong with all that is wrong in any of them."""
    documents: list[Document] = []
    problems: list[str] = []
    for name, folder, text in _texts(sources):
        try:
            roots = list(yaml.compose_all(text, Loader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            problems.append(f"{name}:{line}: this is no YAML: {error.problem or error.context}")
            continue
        except (yaml.YAMLError, RecursionError) as error:
            problems.append(f"{name}: this is no YAML: {' '.join(str(error).split())}")
            continue
        for root in roots:
            if root is None or (root.tag.endswith(":null") and not root.value):
                continue  # nothing between two separators
            checker = Checker(name, folder)
            if document := checker.document(root):
                documents.append(document)
            problems += checker.problems
    problems += _doubles(documents)
    if problems:
        raise Wrong(problems)
    if not documents:
        raise Refused(f"there is no document in {', '.join(sources)}")
    return documents


def _texts(sources: Sequence[str]) -> Iterator[tuple[str, Path, str]]:
    """Name, folder and content of each file."""
    for source in sources:
        if source == "-":
            yield "stdin", Path(), sys.stdin.read()
            continue
        for file in _files(Path(source)):
            try:
                yield str(file), file.parent, file.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise Refused(f"{file} can't be read: {error}") from error


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(
        each
        for each in path.rglob("*")
        if each.suffix in SUFFIXES
        and each.is_file()
        and not any(part.startswith(".") for part in each.relative_to(path).parts)
    )
    if not found:
        raise Refused(f"there is no file *.yaml or *.yml in {path}")
    return found


def _doubles(documents: list[Document]) -> list[str]:
    first: dict[tuple[str, str], Document] = {}
    problems = []
    for each in documents:
        other = first.setdefault(each.key, each)
        if other is not each:
            problems.append(f"{each.place()}: {each.title} is stated in {other.place()} already")
    return problems
