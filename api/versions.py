"""Which api-versions a type accepts, and how the others are refused."""

import re
from dataclasses import dataclass
from datetime import date

from muster.core.errors import Fault, InvalidRequest

WELL_FORMED = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-(?:preview|alpha|beta|rc|privatepreview))?\Z"
)
PATTERN = (
    r"^20(1[4-9]|[2-9][0-9])-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
    r"(-(preview|alpha|beta|rc|privatepreview))?$"
)
EARLIEST = date(2014, 1, 1)


@dataclass(frozen=True)
class Versions:
    """`listed` are accepted by name; `dated` accepts every real date since 2014 beside them."""

    namespace: str
    listed: tuple[str, ...] = ()
    dated: bool = False

    def accepts(self, version: str) -> bool:
        return version in self.listed or (self.dated and _dated(version))

    def check(self, version: str | None, type_name: str) -> str:
        if not version:
            raise InvalidRequest(
                "The api-version query parameter (?api-version=) is required for all requests.",
                code="MissingApiVersionParameter",
                target="api-version",
            )
        if version in self.listed or (self.dated and _dated(version)):
            return version
        raise self._unknown(version, type_name)

    def _unknown(self, version: str, type_name: str) -> Fault:
        if self.dated:
            also = f" or one of '{', '.join(self.listed)}'" if self.listed else ""
            return InvalidRequest(
                f"The api-version '{version[:50]}' is invalid. The supported versions are dates "
                f"from {EARLIEST.isoformat()} on, as YYYY-MM-DD or YYYY-MM-DD-preview{also}.",
                code="InvalidApiVersionParameter",
                target="api-version",
            )
        return InvalidRequest(
            f"No registered resource provider found for API version '{version[:50]}' for type "
            f"'{type_name}'. The supported api-versions are '{', '.join(self.listed)}'. "
            "The supported locations are all locations of this installation.",
            code="NoRegisteredProviderFound",
            target="api-version",
        )


def _dated(version: str) -> bool:
    match = WELL_FORMED.match(version)
    if not match:
        return False
    try:
        return date(int(match[1]), int(match[2]), int(match[3])) >= EARLIEST
    except ValueError:
        return False


SQL = Versions(
    "Microsoft.Sql",
    (
        "2017-03-01-preview",
        "2020-11-01-preview",
        "2023-05-01-preview",
        "2023-08-01-preview",
        "2023-08-01",
        "2024-11-01-preview",
        "2025-01-01",
        "2026-08-01-preview",
    ),
)
RESOURCES = Versions("Microsoft.Resources", dated=True)
SUBSCRIPTIONS = Versions("Microsoft.Resources", ("2.0",), dated=True)
AUTHORIZATION = Versions("Microsoft.Authorization", dated=True)
INSIGHTS = Versions("Microsoft.Insights", dated=True)
OPERATIONS = Versions("Microsoft.Resources", dated=True)
