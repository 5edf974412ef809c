"""Exceptions of the protocol client, and the conversion of a server's error to asyncpg's classes."""

import re

import asyncpg

SQLSTATE = re.compile(r"[0-9A-Z]{5}", re.ASCII)
INTERNAL_ERROR = "XX000"  # stands for an invalid SQLSTATE


class ConnectionAborted(asyncpg.ConnectionDoesNotExistError):
    """The connection was closed, by the server or by us, before a reply was complete."""


class UnexpectedAnswer(asyncpg.InterfaceError):
    """A reply that does not fit the query; no correct server sends it."""


CONNECTION_CLOSED = (ConnectionAborted, asyncpg.InterfaceError)  # without an error of the server


def connection_aborted(last_error: dict[str, str] | None) -> ConnectionAborted:
    """The cause is the last error that the server sent, if any."""
    error = ConnectionAborted("The connection was closed.")
    error.__cause__ = None if last_error is None else server_error(last_error)
    return error


def server_error(fields: dict[str, str]) -> asyncpg.PostgresError:
    """The server's own text only: asyncpg maps some errors to warnings, and adds hints to others."""
    if not SQLSTATE.fullmatch(fields.get("C", "")):
        fields = fields | {"C": INTERNAL_ERROR}
    error = asyncpg.PostgresError.new(fields)
    if not isinstance(error, asyncpg.PostgresError):
        unknown = asyncpg.UnknownPostgresError(str(error.args[0]))
        unknown.__dict__.update(error.__dict__)
        error = unknown
    error.__dict__["hint"] = fields.get("H")
    return error
