"""Why an engine or a host ends: the exit codes, and the errors that lead to them."""

from enum import IntEnum

from muster.core.errors import PreconditionFailed


class Exit(IntEnum):
    DONE = 0  # handed over, drained or stopped, as it was asked
    FAILED = 1  # a mistake of ours, or a login that is not accepted
    MISSTARTED = 2  # the start file is not what it must be
    REFUSED = 3  # the control plane does not want this workload any more
    LOST = 4  # unheard for too long, by the Workload API or by the control database
    FENCED = 5  # a newer epoch is in charge
    INCOMPATIBLE = 6  # this version and the schema of the control database do not fit


class Fenced(PreconditionFailed):
    """Another epoch is in charge: nothing can be written any more."""

    default_code = "EpochNotInCharge"


class Incompatible(PreconditionFailed):
    """The schema is too new, or too old, for this version."""

    default_code = "Incompatible"


class HostEnded(PreconditionFailed):
    """The registration of this host is over or not known."""

    default_code = "HostNotKnown"


class Disagreement(Exception):  # noqa: N818 - what was found, not what went wrong
    """Memory and database tell different things; the database is right."""


FINAL = (Fenced, Incompatible, HostEnded, Disagreement)  # no part may go on after these


def gravest(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of all that was reported at once: a stale epoch weighs more than a disagreement."""
    flat: list[BaseException] = []
    for error in several.exceptions:
        flat += [gravest(error)] if isinstance(error, BaseExceptionGroup) else [error]
    return min(flat, key=lambda error: isinstance(error, Disagreement))
