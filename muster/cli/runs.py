"""How runs and their targets are named on the command line."""

from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from muster.cli.client import Api, Refused, under
from muster.cli.exits import Exit
from muster.cli.names import jobs_near, near

HEX = set("0123456789abcdef-")
SEARCHED = 2000  # the newest runs, among which the beginning of an id must be unique
PAGE = 500


@dataclass(frozen=True)
class Run:
    path: str

    @property
    def id(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def job(self) -> str:
        return unquote(self.path.split("/")[-3])

    @property
    def short(self) -> str:
        return self.id[:8]

    def __str__(self) -> str:
        return f"{self.job} {self.short}"


def of_item(account: str, item: dict[str, Any]) -> Run:
    """From an execution as the API shows it, whose id has names as they are."""
    words = item["id"].split("/")
    return Run(under(account, "jobs", words[-3], "executions", words[-1]))


def find(api: Api, account: str, text: str) -> Run:
    """By id, JOB (its newest run), JOB/beginning of an id, or the unique beginning of an id."""
    job, slash, beginning = text.rpartition("/")
    if slash:
        return _by_beginning(api, account, beginning, under(account, "jobs", job, "executions"))
    if not _is_uuid(text):
        newest = api.find(under(account, "jobs", text, "executions"), {"$top": 1})
        if newest is not None and newest["value"]:
            return of_item(account, newest["value"][0])
        if newest is not None:
            raise Refused(f"the job '{text}' has not run yet", Exit.NOT_FOUND)
    if not set(text.lower()) <= HEX:
        alike = jobs_near(api, account, text)
        raise Refused(f"there is neither a run nor a job '{text}'{alike}", Exit.NOT_FOUND)
    return _by_beginning(api, account, text, f"{account}/executions")


def target(api: Api, run: Run, text: str, step: str | None = None) -> dict[str, Any]:
    """A target execution by targetId, SERVER/DATABASE[/SCHEMA] or DATABASE."""
    path = under(run.path, "steps", step, "targets") if step else f"{run.path}/targets"
    server = text.partition("/")[0] if "/" in text else None
    items = api.all(path, {"server": server})
    targets = [each for each in items if text.lower() in names(each)]
    if not targets:
        alike = near(text, [name(each) for each in items])
        raise Refused(f"the run {run} has no target '{text}'{alike}", Exit.NOT_FOUND)
    if len(targets) > 1:
        some = ", ".join(f"{_step(each)}: {name(each)}" for each in targets[:5])
        raise Refused(f"which target? Use SERVER/DATABASE, or --step: {some}")
    return targets[0]


def target_path(run: Run, item: dict[str, Any]) -> str:
    properties = item["properties"]
    return under(run.path, "steps", properties["stepName"], "targets", properties["targetId"])


def name(item: dict[str, Any]) -> str:
    """SERVER/DATABASE[/SCHEMA] of a target, whether it is an execution or an entry of a list."""
    where = item.get("properties", {}).get("target") or item
    parts = (where.get(key) for key in ("serverName", "databaseName", "schemaName"))
    return "/".join(part for part in parts if part)


def names(item: dict[str, Any]) -> set[str]:
    whole = name(item).lower()
    properties = item["properties"]
    return {whole, whole.partition("/")[2], str(properties["targetId"]).lower()} - {""}


def _by_beginning(api: Api, account: str, beginning: str, path: str) -> Run:
    whole = _is_uuid(beginning)
    runs: list[Run] = []
    items = (item for page in api.pages(path) for item in page["value"])
    for item in items if whole else islice(items, SEARCHED):
        if item["name"].lower().startswith(beginning.lower()):
            runs.append(of_item(account, item))
            if whole or len(runs) > 5:
                break
    if not runs:
        raise Refused(f"there is no run '{beginning}'", Exit.NOT_FOUND)
    if len(runs) > 1:
        names = ", ".join(f"{each.job} {each.id}" for each in runs)
        raise Refused(f"'{beginning}' begins the ids of several runs: {names}")
    return runs[0]


def _step(item: dict[str, Any]) -> str:
    return str(item["properties"].get("stepName", ""))


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
