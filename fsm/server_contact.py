"""Whether a server answers, and what GET shows of it."""

from typing import Any

from fsm.administrator import Means, endpoint_of, login_of, session
from fsm.store import Resource
from muster.core.errors import Fault
from muster.core.sql import Queries
from muster.core.weak_login import WEAK

T = Queries("fsm.sql", "target.sql")

NOT_VERIFIED = "NotVerified"


async def contact(means: Means, server: Resource) -> Fault | None:
    """Why the server can't be used; None when it answers, and lets the administrator in if there is one."""
    try:
        if login_of(server) is None:
            await means.connector.contact(endpoint_of(means, server))
        else:
            async with session(means, server) as connection:
                await connection.fetchrow(T.about_server)
    except Fault as fault:
        return fault
    return None


def conditions(server: Resource, failure: Fault | None) -> list[dict[str, str]]:
    """Of a registered server's endpoint; `failure` is why a server without a login was not reached."""
    notes = []
    endpoint = server.properties.get("endpoint") or {}
    if endpoint.get("sslMode") in {"require", "disable"}:
        message = f"sslMode {endpoint['sslMode']}: the identity of the server is not verified."
        notes.append(condition("TlsNotVerified", message))
    if endpoint.get("authentication") in WEAK:
        message = (
            f"authentication {endpoint['authentication']}: the server, or an attacker in its place, can read "
            "or reuse the passwords that log in there."
        )
        notes.append(condition("WeakAuthentication", message))
    if failure is not None:
        advice = f"Correct its endpoint, or check it again: muster server check {server.name}"
        notes.append(condition(NOT_VERIFIED, f"{failure.message} {advice}"))
    return notes


def condition(kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "message": message}
