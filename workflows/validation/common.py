"""Rules that all resources share; every function returns all that is wrong."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from muster.core.errors import FieldError
from muster.core.settings import Settings
from workflows.model.resource import DATABASE, GROUP, LOCK, POOL, SERVER, TOKEN, Resource
from workflows.resource_kind import Draft

GENERIC_FORBIDDEN = '<>%&:\\?/*"'
DEVICES = {"con", "prn", "aux", "nul"} | {f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10)}
LOCATION = re.compile(r"[a-z0-9]{1,60}")
LABEL_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
# Category Zs: visible, but not printable for Python.
SPACES = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
MAX_TAGS = 50
MAX_LABELS = 64


def resource(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    """The envelope: name, location, tags, sku."""
    content = draft.content
    return [
        *([] if old else name(draft.id.type, draft.id.name)),
        *location(content.location, old.location if old else None, settings),
        *tags(content.tags),
        *sku(content.sku),
    ]


def sku(document: dict[str, Any] | None) -> list[FieldError]:
    if document is None or document.get("name"):
        return []
    return [FieldError("sku.name", "A sku needs a name.", "MissingSkuName")]


def name(type: str, text: str) -> list[FieldError]:
    rule = NAMES.get(type)
    problem = rule(text) if rule else None
    return [FieldError("name", problem, "InvalidResourceName")] if problem else []


def item_name(text: str, where: str = "name") -> list[FieldError]:
    """Of what lies in an account: jobs, steps, groups, credentials."""
    problem = generic(text)
    return [FieldError(where, problem, "InvalidResourceName")] if problem else []


def no_longer(where: str, text: str | None, most: int) -> list[FieldError]:
    if text is None or len(text) <= most:
        return []
    return [FieldError(where, f"At most {most} characters; it has {len(text)}.")]


def normal_location(text: str) -> str:
    return text.lower().replace(" ", "")


def location(new: str | None, old: str | None, settings: Settings) -> list[FieldError]:
    if new is None:
        return []
    if old is not None and new != old:
        return [
            FieldError(
                "location",
                f"The location can't be changed: it is '{old}'.",
                "InvalidResourceLocation",
            )
        ]
    allowed = [normal_location(each) for each in settings.locations]
    if not LOCATION.fullmatch(new):
        return [
            FieldError(
                "location",
                "A location consists of letters and digits.",
                "LocationNotAvailableForResourceType",
            )
        ]
    if old is None and allowed and new not in allowed:
        return [
            FieldError(
                "location",
                f"'{new}' is not available; available: {', '.join(allowed)}.",
                "LocationNotAvailableForResourceType",
            )
        ]
    return []


def tags(values: dict[str, str]) -> list[FieldError]:
    errors = []
    if len(values) > MAX_TAGS:
        errors.append(
            FieldError(
                "tags", f"At most {MAX_TAGS} tags; {len(values)} were given.", "TagsLimitExceeded"
            )
        )
    seen: dict[str, str] = {}
    for key, value in values.items():
        where = f"tags.{key[:80]}"
        if not 1 <= len(key) <= 512 or any(c in key for c in "<>%&\\?/"):
            errors.append(
                FieldError(
                    where,
                    "A tag name has 1 to 512 characters, none of < > % & \\ ? /.",
                    "InvalidTagName",
                )
            )
        if len(value) > 256:
            errors.append(
                FieldError(where, "A tag value has at most 256 characters.", "InvalidTagValue")
            )
        if key.lower() in seen:
            errors.append(
                FieldError(
                    where,
                    f"Tag names ignore case: it is the same as '{seen[key.lower()]}'.",
                    "InvalidTagName",
                )
            )
        seen[key.lower()] = key
    return errors


def labels(where: str, values: dict[str, str] | None) -> list[FieldError]:
    if not values:
        return []
    errors = []
    if len(values) > MAX_LABELS:
        errors.append(FieldError(where, f"At most {MAX_LABELS} labels."))
    for key, value in values.items():
        if not LABEL_KEY.fullmatch(key):
            errors.append(
                FieldError(
                    f"{where}.{key[:80]}",
                    "A label name has 1 to 63 letters, digits, . _ - / and begins and ends with a letter or digit.",
                )
            )
        if len(value) > 256:
            errors.append(
                FieldError(f"{where}.{key[:80]}", "A label value has at most 256 characters.")
            )
    return errors


def within(where: str, value: Any, low: float, high: float) -> list[FieldError]:
    if value is None or low <= value <= high:
        return []
    return [FieldError(where, f"Must be between {low:.15g} and {high:.15g}; it is {value}.")]


def fixed(where: str, new: Any, old: Any, why: str) -> list[FieldError]:
    """Refuses a change of what is decided at creation."""
    if old is None or new == old:
        return []
    return [FieldError(where, f"Can't be changed from '{old}': {why}", "PropertyChangeUnsupported")]


def identifier(text: str) -> str | None:
    """What is wrong with a PostgreSQL identifier, or None."""
    if not 1 <= len(text.encode()) <= 63:
        return "A PostgreSQL name has 1 to 63 bytes."
    if invisible(text):
        return "Control, invisible and direction-changing characters are not allowed."
    if text != text.strip():
        return "It must not begin or end with a space."
    return None


def invisible(text: str) -> bool:
    """Whether it holds a character of the categories Cc, Cf, Cs, Co, Cn, Zl or Zp."""
    return not text.isprintable() and not SPACES.sub("", text).isprintable()


def generic(text: str, *, longest: int = 128) -> str | None:
    if not 1 <= len(text) <= longest:
        return f"A name has 1 to {longest} characters."
    if any(c in GENERIC_FORBIDDEN for c in text) or not text.isascii() or invisible(text):
        return f"A name has none of {' '.join(GENERIC_FORBIDDEN)}, only visible ASCII characters."
    if text[-1] in " ." or text[0] == " " or text.lower() in DEVICES:
        return "A name must not be a device name, begin with a space or end with a space or a dot."
    return None


def server(text: str) -> str | None:
    if re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text) and text not in DEVICES:
        return None
    return (
        "A server name has 1 to 63 lower-case letters, digits and hyphens, no hyphen at either end."
    )


def group(text: str) -> str | None:
    if (
        re.fullmatch(r"[A-Za-z0-9_().-]{1,90}", text)
        and not text.endswith(".")
        and text.lower() not in DEVICES
    ):
        return None
    return "A resource group name has 1 to 90 letters, digits, - _ ( ) and dots, and no dot at the end."


def subscription(text: str) -> str | None:
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", text):
        return None
    return "A subscription id has 1 to 63 letters, digits and hyphens; usually it is a uuid."


def one_line(items: Iterable[str]) -> str:
    return ", ".join(items)


NAMES: dict[str, Callable[[str], str | None]] = {
    "Microsoft.Resources/subscriptions": subscription,
    GROUP: group,
    SERVER: server,
    DATABASE: identifier,
    POOL: generic,
    TOKEN: generic,
    LOCK: generic,
}
