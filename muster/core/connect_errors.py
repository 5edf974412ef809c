"""Why a server could not be connected to, as a Fault: its code, what the server said, and no secret."""

import contextlib
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from asyncpg.pgproto import pgproto

from muster.core.errors import Fault, InvalidRequest, NotFound, Unavailable
from muster.core.pinned_transport import Dialer, TlsRefusedError

# What a server that lies can lead asyncpg into.
CONFUSED = (
    asyncpg.InternalClientError,
    pgproto.BufferError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    LookupError,
    RuntimeError,
    SystemError,
    TypeError,
    ValueError,
)
SQLSTATE = re.compile(r"[0-9A-Z]{5}")


class NoRoom(Unavailable):
    """The server is there and has no session for us now: too many, or it is just starting."""

    def __init__(self, message: str, *, crowded: bool = False, **more: Any) -> None:
        super().__init__(message, **more)
        self.crowded = crowded


@dataclass(frozen=True)
class Login:
    user: str
    password: str = field(repr=False)
    database: str
    application_name: str


@contextlib.contextmanager
def as_fault(host: str, login: Login, dialer: Dialer) -> Iterator[None]:
    """The one place where failures to connect get their code."""
    try:
        yield
    except TimeoutError:  # the system's, also an OSError
        raise timed_out(host) from None
    except (ssl.SSLError, TlsRefusedError) as error:
        raise _tls_error(host, error) from None
    except asyncpg.TargetServerAttributeNotMatched:
        raise unreachable(host, "it is not in the wanted role") from None
    except asyncpg.PostgresError as error:
        raise _given_up(host, dialer) or _refused(host, login, error) from None
    except (OSError, asyncpg.InterfaceError, *CONFUSED) as error:
        why, context = "no PostgreSQL answers there", _clean(error, login)
        raise _given_up(host, dialer) or unreachable(host, why, context=context) from None


def _given_up(host: str, dialer: Dialer) -> Fault | None:
    """By ourselves: the server asked for what it must not have."""
    if not dialer.refusal:
        return None
    message = f"The connection to {host} was given up: {dialer.refusal}."
    return InvalidRequest(message, code="TargetAuthenticationFailed")


def _refused(host: str, login: Login, error: asyncpg.PostgresError) -> Fault:
    """What a server answered to a login."""
    user, database = printable(login.user), printable(login.database)
    fields: dict[str, Any] = {
        "sqlstate": error.sqlstate if SQLSTATE.fullmatch(error.sqlstate or "") else None,
        "detail": _words(error, login),
        "context": _clean(error, login),
    }
    match error:
        case asyncpg.InvalidPasswordError():
            why = "the password is wrong, or there is no such role"
            message = f"The server {host} did not accept the login '{user}': {why}."
            return InvalidRequest(message, code="TargetAuthenticationFailed", **fields)
        case asyncpg.InvalidAuthorizationSpecificationError():
            why = (
                "its pg_hba.conf has no entry for that or wants a client certificate that it accepts,"
                " or the role may not log in"
            )
            message = f"The server {host} accepts no login as '{user}' from here: {why}."
            return InvalidRequest(message, code="TargetAuthenticationFailed", **fields)
        case asyncpg.InsufficientPrivilegeError():
            grant = f"GRANT CONNECT ON DATABASE {identifier(database)} TO {identifier(user)};"
            message = f"The login '{user}' may not connect to '{database}' on {host}. Run: {grant}"
            return InvalidRequest(message, code="ConnectNotGranted", **fields)
        case asyncpg.InvalidCatalogNameError():
            message = f"The database '{database}' does not exist on {host}."
            return NotFound(message, code="TargetDatabaseNotFound", **fields)
    why = f"it refused the connection ({fields['sqlstate'] or 'no SQLSTATE'})"
    if isinstance(error, asyncpg.TooManyConnectionsError | asyncpg.CannotConnectNowError):
        crowded = isinstance(error, asyncpg.TooManyConnectionsError)
        message = f"The server {host} can't be reached: {why}."
        return NoRoom(message, code="TargetUnreachable", crowded=crowded, **fields)
    return unreachable(host, why, **fields)


def not_allowed(host: str, why: str) -> InvalidRequest:
    message = f"The server {host[:253]} may not be connected to: {why}."
    return InvalidRequest(message, code="TargetNotAllowed")


def not_proven(host: str, user: str) -> InvalidRequest:
    return InvalidRequest(
        f"The server {host} accepted '{user}' by its client certificate alone. Jobs log in by the password of their"
        " credential: let its pg_hba.conf ask for that as well (scram-sha-256 clientcert=verify-ca instead of cert).",
        code="CertificateIsNoLogin",
    )


def timed_out(host: str) -> Unavailable:
    return Unavailable(f"The server {host} did not answer in time.", code="TargetTimeout")


def _tls_error(host: str, error: Exception) -> InvalidRequest:
    why = getattr(error, "verify_message", "") or getattr(error, "reason", "") or str(error)
    message = f"No verified TLS connection to {host}: {printable(why)}."
    return InvalidRequest(message, code="TargetTlsError")


def unreachable(host: str, why: str, **fields: Any) -> Unavailable:
    message = f"The server {host} can't be reached: {why}."
    return Unavailable(message, code="TargetUnreachable", **fields)


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _words(error: asyncpg.PostgresError, login: Login) -> str:
    """A server's message, without the password: the server may have received it and may quote it."""
    parts = (error.args[0] if error.args else "", error.detail, error.hint)
    return _without_secret(". ".join(part.rstrip(".") for part in parts if part), login)


def _clean(error: Exception, login: Login) -> str:
    text = f"{type(error).__name__} {getattr(error, 'sqlstate', '')} {error}"
    return _without_secret(text, login)


def _without_secret(text: str, login: Login) -> str:
    return printable(text.replace(login.password, "***") if login.password else text)


def printable(text: str) -> str:
    """A server's words are a stranger's: printable and short."""
    return "".join(letter for letter in text if letter.isprintable())[:500].rstrip(".")
