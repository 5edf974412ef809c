"""Sessions of a server's administrator: where the server is, who logs in, and what errors mean."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import asyncpg
import msgspec

from fsm.store import Resource
from muster.core.connect import Connector, Endpoint
from muster.core.connect_errors import CONFUSED
from muster.core.db import Connection
from muster.core.errors import Conflict, Forbidden, InvalidRequest, Unavailable
from muster.core.secrets import Keyring
from muster.core.settings import Secret

PASSWORD = "administratorLoginPassword"  # noqa: S105 - the name of a field
CLIENT_KEY = "endpoint.clientKey"
APPLICATION = "muster-fsm"


class Means(Protocol):
    """What it takes to log in: the services of the runner, or those of the workflows."""

    @property
    def keyring(self) -> Keyring: ...
    @property
    def connector(self) -> Connector: ...


def is_embedded(server: Resource) -> bool:
    return not server.properties.get("endpoint")


def login_of(server: Resource) -> str | None:
    login: str | None = server.properties.get("administratorLogin")
    return login


def secret_of(means: Means, resource: Resource, name: str) -> Secret | None:
    sealed = resource.sealed.get(name)
    return means.keyring.open(sealed, f"{resource.uid}/{name}") if sealed else None


def endpoint_of(means: Means, server: Resource) -> Endpoint:
    """As the customer registered it, or where our own cluster answers."""
    document = server.properties.get("endpoint") or server.observed.get("endpoint")
    if document is None:
        raise Unavailable("The server does not run yet.", code="TargetUnreachable")
    stated = {name: value for name, value in document.items() if value is not None}
    if key := secret_of(means, server, CLIENT_KEY):
        stated["clientKey"] = key.reveal()
    return msgspec.convert(stated, Endpoint)


@contextlib.asynccontextmanager
async def session(
    means: Means, server: Resource, *, database: str | None = None
) -> AsyncIterator[Connection]:
    """In the maintenance database by default; errors come out as Faults that say what can be done."""
    login = login_of(server)
    if login is None:
        raise InvalidRequest(
            "The server has no administratorLogin: nothing can be done on it.",
            code="ServerNotVerified",
            target="properties.administratorLogin",
        )
    connection = means.connector.session(
        endpoint_of(means, server).direct(),
        user=login,
        password=secret_of(means, server, PASSWORD) or "",
        application_name=APPLICATION,
        database=database,
    )
    with told_as_faults():
        async with connection as opened:
            yield opened


@contextlib.contextmanager
def told_as_faults() -> Any:
    """What PostgreSQL says to a statement, in our tree: may be repeated, or never helps."""
    try:
        yield
    except asyncpg.InsufficientPrivilegeError as error:
        raise Forbidden(f"The server refused: {error}.", code="TargetPermissionDenied") from error
    except asyncpg.ObjectInUseError as error:
        raise Conflict(f"In use: {error}.", code="DatabaseInUse") from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, *CONFUSED) as error:
        raise Unavailable(f"The server answered: {error}.", code="TargetUnavailable") from error
