"""Conditions of a resource: a type, a sentence, and since when."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

Condition = dict[str, Any]


def condition(code: str, message: str, since: datetime) -> Condition:
    at = since.isoformat().replace("+00:00", "Z")
    return {"type": code, "status": "True", "message": message, "since": at}


def renewed(old: Sequence[Condition] | None, new: Condition) -> list[Condition]:
    """The new one alone; where it is the same as before, since when it was so."""
    before = next((each for each in old or () if each["type"] == new["type"]), new)
    return [{**new, "since": before["since"]}]
