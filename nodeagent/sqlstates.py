"""Errors of a control database as Muster's faults: the only place that reads SQLSTATE."""

import contextlib
from collections.abc import Iterator

import asyncpg

from muster.core.errors import (
    Conflict,
    Fault,
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Unavailable,
)
from muster.core.sanitize import plain

Meaning = tuple[type[Fault], str]
EXACT: dict[str, Meaning] = {
    "MU001": (PreconditionFailed, "EpochNotInCharge"),
    "MU002": (Conflict, "IdempotencyKeyMismatch"),
    "MU003": (PreconditionFailed, "Incompatible"),
    "MU004": (PreconditionFailed, "HostNotKnown"),
    "25006": (Unavailable, "ControlDatabaseReadOnly"),
    "2BP01": (Conflict, "RoleInUse"),
    "3F000": (NotFound, "ControlSchemaMissing"),
    "42501": (Forbidden, "ControlDatabasePermissionDenied"),
    "42883": (NotFound, "ControlSchemaMissing"),
    "42P01": (NotFound, "ControlSchemaMissing"),
    "55P03": (Unavailable, "ControlDatabaseBusy"),
    "57014": (Unavailable, "ControlDatabaseBusy"),
}
# What the functions of the control database raise on purpose: their words are ours. The field stands
# in `column`, a special code in `constraint`.
FIELDS = {"plan_id": "planId", "target_id": "targetId"}  # as REST names these parameters
OWN: dict[str, Meaning] = {
    "MU010": (NotFound, "ResourceNotFound"),
    "MU011": (Conflict, "Conflict"),
    "MU012": (InvalidRequest, "InvalidParameterValue"),
    "MU013": (InvalidRequest, "ElasticJobsOperationFailed"),
    "MU014": (PreconditionFailed, "PreconditionFailed"),
    "MU015": (InvalidRequest, "InvalidTargetServer"),
    "MU016": (InvalidRequest, "QuotaExceeded"),
    "MU017": (Conflict, "Conflict"),
}
BY_CLASS: dict[str, Meaning] = {
    "08": (Unavailable, "ControlDatabaseUnavailable"),
    "23": (Conflict, "ControlDatabaseRefused"),
    "25": (Unavailable, "ControlDatabaseUnavailable"),
    "40": (Unavailable, "ControlDatabaseBusy"),
    "42": (Conflict, "ControlSchemaDamaged"),
    "53": (Unavailable, "ControlDatabaseUnavailable"),
    "57": (Unavailable, "ControlDatabaseUnavailable"),
    "58": (Unavailable, "ControlDatabaseUnavailable"),
}
UNKNOWN: Meaning = (Internal, "ControlDatabaseFailed")


@contextlib.contextmanager
def told_as_faults() -> Iterator[None]:
    try:
        yield
    except asyncpg.PostgresError as error:
        if error.sqlstate in OWN:
            raise _own(error) from error
        kind, code = meaning(error.sqlstate or "")
        raise kind(_told(error), code=code, context=error.sqlstate or "") from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
        if isinstance(error, TimeoutError):  # an OSError too, and the business of who set the limit
            raise
        raise Unavailable(
            "The connection to the control database was lost.",
            code="ControlDatabaseUnavailable",
            context=type(error).__name__,
        ) from error


def meaning(sqlstate: str) -> Meaning:
    return EXACT.get(sqlstate) or BY_CLASS.get(sqlstate[:2]) or UNKNOWN


def _own(error: asyncpg.PostgresError) -> Fault:
    fields = {name: getattr(error, name, None) for name in ("detail", "hint", "column_name")}
    kind, code = OWN[error.sqlstate or ""]
    sentences = [
        _sentence(text) for text in (_text(error), fields["detail"], fields["hint"]) if text
    ]
    code = getattr(error, "constraint_name", None) or code
    column = fields["column_name"] or None
    return kind(" ".join(sentences), code=code, target=FIELDS.get(column or "", column))


def _told(error: asyncpg.PostgresError) -> str:
    text = _text(error)
    if detail := getattr(error, "detail", None):
        text = f"{text} ({detail})"
    return f"The control database answered: {plain(text).rstrip('.')}."


def _text(error: asyncpg.PostgresError) -> str:
    return str(error.args[0]) if error.args else type(error).__name__


def _sentence(text: str) -> str:
    text = plain(text)
    return text[:1].upper() + text[1:].rstrip(".") + "."
