"""Refuses to delete what holds a live account's control database."""

from muster.core.db import Connection, Row
from muster.core.errors import Conflict, FieldError
from workflows.model.resource import Call, Resource
from workflows.store.resources import Q


async def server(tx: Connection, call: Call, resource: Resource) -> None:
    del call
    id = resource.resource_id
    _refuse(resource, await tx.fetch(Q.accounts_below, (id.subscription or "").lower(), id.key))


async def database(tx: Connection, call: Call, resource: Resource) -> None:
    del call
    _refuse(resource, await tx.fetch(Q.accounts_of_database, resource.resource_id.key))


def _refuse(resource: Resource, accounts: list[Row]) -> None:
    if accounts:
        raise Conflict(
            f"'{resource.name}' holds the control database of a job account; delete that first.",
            code="ControlDatabaseInUse",
            details=[
                FieldError(row["id"], "A live job account.", "ControlDatabaseInUse")
                for row in accounts
            ],
        )
