"""Whether properties that came about by a merge still have all that PUT would demand."""

from typing import Any

from muster.core.errors import FieldError
from workflows.model.wire import Properties
from workflows.resource_kind import nested


def complete(
    struct: type[Properties], document: dict[str, Any], where: str = "properties"
) -> list[FieldError]:
    code = "MissingRequiredParameter"
    errors = [
        FieldError(f"{where}.{name}", "This field is required.", code)
        for name in sorted(struct.REQUIRED)
        if document.get(name) is None
    ]
    for name, inner in nested(struct):
        if isinstance(document.get(name), dict):
            errors += complete(inner, document[name], f"{where}.{name}")
    return errors
