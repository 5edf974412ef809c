"""Why an engine or a host ends: the exit codes, and the errors that lead to them."""

from enum import IntEnum

from muster.core.errors import PreconditionFailed


class Exit(IntEnum):
    DONE = 0  # handed over, drained or stopped, as requested
    FAILED = 1  # an internal error, or a login that was refused
    MISSTARTED = 2  # the start file is invalid
    REFUSED = 3  # the control plane has ended this workload
    LOST = 4  # the Workload API or the control database was unreachable for too long
    FENCED = 5  # a newer epoch is current
    INCOMPATIBLE = 6  # this version does not support the schema of the control database


class Fenced(PreconditionFailed):
    """Another epoch is current: this process can't write any more."""

    default_code = "EpochNotInCharge"


class Incompatible(PreconditionFailed):
    """The schema is too new, or too old, for this version."""

    default_code = "Incompatible"


class HostEnded(PreconditionFailed):
    """This host is not registered or has ended."""

    default_code = "HostNotKnown"


class Disagreement(Exception):  # noqa: N818 - a finding, not an error
    """Memory and database differ; the database is right."""


FINAL = (Fenced, Incompatible, HostEnded, Disagreement)  # no service continues after these


def most_severe(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that decides the exit code: a stale epoch rather than a disagreement."""
    flat: list[BaseException] = []
    for error in several.exceptions:
        flat += [most_severe(error)] if isinstance(error, BaseExceptionGroup) else [error]
    return min(flat, key=lambda error: isinstance(error, Disagreement))
