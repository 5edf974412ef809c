"""Operations that Azure has too are called as Azure calls them, as read off its installed client."""

import re
from functools import cache
from pathlib import Path

import azure.mgmt.sql

from api.endpoint import table
from api.resources import RESOURCES

CLIENT = Path(azure.mgmt.sql.__file__).parent / "operations" / "_operations.py"
BUILDER = re.compile(r'(\w+)_request\(.*?    _url = "([^"]+)".*?\(method="(\w+)"', re.DOTALL)
GROUP = re.compile(r"^class _?(\w+)Operations\b", re.MULTILINE)
MUSTERS = {(each.method, each.template): each.operation_id for each in table(RESOURCES)}


def place(method: str, path: str) -> tuple[str, str]:
    """Method and path, the names in the path left out."""
    return method, re.sub(r"{\w+}", "{}", path).lower()


@cache
def azures() -> dict[tuple[str, str], str]:
    """The operation ids of Azure, by method and path."""
    text = CLIENT.read_text()
    groups = {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower(): name for name in GROUP.findall(text)}
    ids = {}
    for function in text.split("\ndef build_")[1:]:
        found = BUILDER.match(function)
        assert found
        builder, path, method = found.groups()
        group = max(
            (each for each in groups if builder.startswith(f"{each}_")), key=len, default=""
        )
        if group:
            verb = builder.removeprefix(f"{group}_").title().replace("_", "")
            ids[place(method, path)] = f"{groups[group]}_{verb}"
    return ids


def test_operations_that_azure_has_bear_its_names() -> None:
    theirs = azures()
    shared = {own: theirs[place(*at)] for at, own in MUSTERS.items() if place(*at) in theirs}

    assert {own: name for own, name in shared.items() if own != name} == {}
    assert len(shared) >= 57


def test_every_operation_of_azure_on_jobs_is_served() -> None:
    served = {place(*at) for at in MUSTERS}
    jobs = {at: name for at, name in azures().items() if "/servers/{}/jobagents" in at[1]}

    assert len(jobs) == 40
    assert {name for at, name in jobs.items() if at not in served} == set()


def test_no_operation_of_musters_own_bears_a_name_of_azure() -> None:
    theirs = azures()
    names = set(theirs.values())

    assert {own for at, own in MUSTERS.items() if place(*at) not in theirs} & names == set()
