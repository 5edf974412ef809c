"""Query strings: names without regard to case, each given once, decoded once, none unknown."""

import difflib
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from muster.core.errors import InvalidRequest

SHORT = 64  # such strings repeat; longer ones are parsed each time


def parse(raw: bytes) -> dict[str, str]:
    """Not to be changed by the caller: short ones are shared."""
    if not raw:
        return {}
    return _remembered(raw) if len(raw) <= SHORT else _parse(raw)


def check(parameters: Mapping[str, str], accepted: Mapping[str, str]) -> None:
    """Refuses what the operation does not read; `accepted` has the names by their lower case."""
    for name in parameters:
        if name in accepted:
            continue
        near = difflib.get_close_matches(name[:100], accepted, n=1, cutoff=0.5)
        hint = f" Did you mean '{accepted[near[0]]}'?" if near else ""
        raise InvalidRequest(
            f"The query parameter '{name[:100]}' is not known here.{hint} "
            f"Known: {', '.join(sorted(accepted.values()))}.",
            code="InvalidQueryParameter",
            target=name[:100],
        )


def check_values(parameters: Mapping[str, str], choices: Mapping[str, tuple[str, ...]]) -> None:
    """Refuses a value that its declaration does not list, by the declared names; case does not count."""
    for name, listed in choices.items():
        value = parameters.get(name.lower())
        if value is not None and value.lower() not in {each.lower() for each in listed}:
            raise InvalidRequest(
                f"{name}: expected {' or '.join(listed)}.",
                code="InvalidParameterValue",
                target=name,
            )


def _parse(raw: bytes) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for part in raw.split(b"&"):
        if not part:
            continue
        name, _, value = part.partition(b"=")
        key = _decode(name).lower()
        if key in parameters:
            raise InvalidRequest(
                f"The query parameter '{key[:50]}' may be given only once.",
                code="InvalidQueryParameter",
            )
        parameters[key] = _decode(value)
        if "\0" in parameters[key]:  # PostgreSQL's text can't hold it
            raise InvalidRequest(
                f"The query parameter '{key[:50]}' holds a NUL.",
                code="InvalidQueryParameter",
                target=key[:50],
            )
    return parameters


def _decode(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(
            "The query string is not valid UTF-8.", code="InvalidQueryParameter"
        ) from None


_remembered = lru_cache(maxsize=512)(_parse)
