"""What `--prune` and `--prune-all` delete: resources of the account that no file states."""

import argparse

from muster.cli import inputs, output
from muster.cli.client import Api, Refused
from muster.cli.declared.document import Document
from muster.cli.declared.export import listed
from muster.cli.declared.kinds import JOB, KINDS, MARK
from muster.cli.declared.plan import Removal, current, exported, in_order


def removals(
    api: Api, account: str, documents: list[Document], *, everything: bool
) -> list[Removal]:
    """In the reverse order of writes. Without `everything` only jobs that `muster apply` created."""
    stated = {each.key for each in documents}
    found = []
    for kind in KINDS.values():
        if kind is not JOB and not everything:
            continue
        for item in listed(api, account, kind):
            is_ours = MARK in (item["properties"].get("labels") or {}) if kind is JOB else False
            if (kind.name, item["name"].lower()) in stated or not (everything or is_ours):
                continue
            if (there := current(api, account, kind, item["name"])) is not None:
                document = Document(kind, there.name, there.properties)
                found.append(Removal(document, account, there.etag, exported(kind, there, account)))
    by_document = {id(each.document): each for each in found}
    ordered = in_order([each.document for each in found], account)
    return [by_document[id(each)] for each in reversed(ordered)]


def agreed(options: argparse.Namespace, doomed: list[Removal]) -> None:
    """Before anything is written."""
    if not doomed or options.yes:
        return
    if not inputs.can_ask():
        raise Refused(f"deleting {_names(doomed)} without a terminal needs --yes")
    output.aside([f"To be deleted: {_names(doomed)}"])
    if not inputs.agrees(f"Delete {output.many(len(doomed), 'resource')}?"):
        raise Refused("nothing was applied")


def _names(doomed: list[Removal]) -> str:
    return ", ".join(each.document.title for each in doomed)
