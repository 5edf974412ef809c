"""Every operation with the use case that serves it, from the declared types: `python -m api.routes`."""

import sys
from collections.abc import Iterator
from types import MethodType
from typing import Any

from api.endpoint import Endpoint, table
from api.handlers import HANDLERS
from api.resource import UseCase
from api.resources import RESOURCES

PACKAGES = ("workflows.", "api.resources.")


def lines() -> Iterator[str]:
    """Method, use case and path template of each operation."""
    routes = [(each.method, use_case(each), each.template) for each in table(RESOURCES)]
    width = max(len(name) for _, name, _ in routes)
    for method, name, template in routes:
        yield f"{method:6} {name:{width}} {template}"


def use_case(endpoint: Endpoint) -> str:
    """Module and name; of the handler where there is no use case: operations are only polled."""
    declared = endpoint.verb or endpoint.act or endpoint.report or endpoint.feed
    return qualified_name(declared.run if declared else HANDLERS[endpoint.kind])


def qualified_name(run: UseCase) -> str:
    """By the variable that holds it where it is a partial or the method of an object."""
    if isinstance(run, MethodType):
        return f"{_variable(run.__self__)}.{run.__name__}"
    if hasattr(run, "__qualname__"):
        return f"{run.__module__}.{run.__qualname__}"
    return _variable(run)


def _variable(value: Any) -> str:
    for module in sorted(name for name in sys.modules if name.startswith(PACKAGES)):
        for name, each in vars(sys.modules[module]).items():
            if each is value:
                return f"{module}.{name}"
    raise LookupError(f"no module has a variable for {value!r}")


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines())
