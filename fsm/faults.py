"""How an error of a step is shown to the customer: in ARM's form, without internal details."""

from typing import Any

from muster.core.errors import Fault
from muster.core.failpoints import FailpointError

Error = dict[str, Any]

INTERRUPTED: Error = {
    "code": "OperationInterrupted",
    "message": "The operation was interrupted because the resource is being deleted.",
}


def to_error(error: Exception) -> Error:
    match error:
        case Fault():
            out: Error = {"code": error.code, "message": error.message}
            if error.target:
                out["target"] = error.target
            if error.details:
                out["details"] = [
                    {"code": d.code, "message": d.message, "target": d.target}
                    for d in error.details
                ]
            return out
        case TimeoutError():
            return {"code": "StepTimedOut", "message": "A step took longer than it may take."}
        case FailpointError():
            return {"code": "FailpointRaised", "message": str(error)}
        case _:
            return {"code": "InternalServerError", "message": "An internal error occurred."}


def overdue(state: str, waiting_for: str | None, last: Error | None) -> Error:
    """The deadline's own error, unless an error had already said what is wrong."""
    if last:
        return last
    why = waiting_for or "it did not finish"
    return {
        "code": "OperationTimedOut",
        "message": f"Timed out in state '{state}': {why}.",
    }


def refused(signal: str, state: str) -> Error:
    return {
        "code": "OperationNotAllowed",
        "message": f"'{signal}' is not possible in state '{state}'.",
    }
