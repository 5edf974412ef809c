"""The work in each state of a server; every step may be repeated."""

from dataclasses import replace
from typing import Any

from fsm import children
from fsm.administrator import PASSWORD, is_embedded, login_of, secret_of, session
from fsm.context import Clusters, Context
from fsm.lifecycle_table import Done, Outcome
from fsm.server_contact import condition, conditions, contact
from fsm.store import Resource
from muster.core import session_budget
from muster.core.errors import InvalidRequest, Unavailable
from muster.core.sql import Queries

T = Queries("fsm.sql", "target.sql")

OLDEST = 120_000  # server_version_num of PostgreSQL 12
LOOPBACK = "127.0.0.1"


async def reserve(ctx: Context) -> Outcome:
    """The name of the cluster is stored before the cluster is made."""
    if not is_embedded(ctx.resource):
        return Done()
    if login_of(ctx.resource) is None or PASSWORD not in ctx.resource.sealed:
        raise InvalidRequest(
            "A server without an endpoint needs administratorLogin and administratorLoginPassword.",
            code="InvalidParameterValue",
            target="properties.administratorLogin",
        )
    _clusters(ctx)
    return Done(scratch={"cluster": str(ctx.resource.uid)})


async def make_cluster(ctx: Context) -> Outcome:
    if is_embedded(ctx.resource):
        await _clusters(ctx).create(ctx.resource.uid)
    return Done()


async def start_cluster(ctx: Context) -> Outcome:
    if not is_embedded(ctx.resource):
        return Done()
    port = await _clusters(ctx).start(ctx.resource.uid)
    await _set_administrator(ctx)
    endpoint = {"host": LOOPBACK, "port": port, "sslMode": "disable"}
    return Done(observed={"endpoint": endpoint, "embedded": True})


async def verify(ctx: Context) -> Outcome:
    """Connects as the administrator and keeps what it learns; without one, only whether it answers."""
    server = ctx.resource
    failure = await contact(ctx.services, server) if login_of(server) is None else None
    observed: dict[str, Any] = {
        "fullyQualifiedDomainName": _host(server),
        "conditions": conditions(server, failure),
        "serverVersion": None,
        "maxConnections": None,
    }
    if login_of(server) is None:
        return Done(observed=observed)
    async with session(ctx.services, server) as connection:
        about = await connection.fetchrow(T.about_server)
    assert about is not None
    if about["number"] < OLDEST:
        raise InvalidRequest(
            f"PostgreSQL {about['version']} is too old: version 12 or newer is needed.",
            code="ServerVersionUnsupported",
            target="properties.endpoint",
        )
    observed["serverVersion"] = about["version"]
    if not about["may_create"]:
        observed["conditions"].append(
            condition("CreateDatabaseNotAllowed", "The administrator may not create databases.")
        )
    if "maxConnections" not in server.properties:
        # What a host finds at first contact counts: by then the server may be fuller, or emptier.
        observed["maxConnections"] = session_budget.sessions(about["unused_connections"])
    return Done(observed=observed)


async def apply_changes(ctx: Context) -> Outcome:
    """What was not verified does not stay: the table brings the old settings back."""
    if not is_embedded(ctx.resource):
        return await verify(ctx)
    running = await start_cluster(ctx)
    assert isinstance(running, Done)
    server = replace(ctx.resource, observed={**ctx.resource.observed, **running.observed})
    verified = await verify(replace(ctx, resource=server))
    assert isinstance(verified, Done)
    return Done(observed={**running.observed, **verified.observed})


async def remove_children(ctx: Context) -> Outcome:
    return await children.remove(ctx)


async def stop_cluster(ctx: Context) -> Outcome:
    if is_embedded(ctx.resource):
        await _clusters(ctx).stop(ctx.resource.uid)
    return Done()


async def remove_cluster(ctx: Context) -> Outcome:
    if is_embedded(ctx.resource):
        await _clusters(ctx).destroy(ctx.resource.uid)
    return Done()


def _clusters(ctx: Context) -> Clusters:
    if ctx.services.clusters is None:
        raise Unavailable(
            "Embedded servers are created and removed only where Muster has a data directory.",
            code="EmbeddedModeOff",
        )
    return ctx.services.clusters


async def _set_administrator(ctx: Context) -> None:
    login = login_of(ctx.resource)
    password = secret_of(ctx.services, ctx.resource, PASSWORD)
    if login and password:
        await _clusters(ctx).set_administrator(ctx.resource.uid, login, password)


def _host(server: Resource) -> str:
    endpoint = server.properties.get("endpoint") or {}
    hosts = endpoint.get("hosts") or [LOOPBACK]
    return str(endpoint.get("host") or hosts[0])
