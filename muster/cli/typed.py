"""Durations, intervals and fixed words in the forms that people type: 90s, 15 min, 1h30m, PT1H, Failed, timed-out."""

import argparse
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

NAMES = {  # unit in ISO 8601 → how it is typed; a lone m is minutes
    "Y": ("y", "year", "years"),
    "MO": ("mo", "month", "months"),
    "W": ("w", "week", "weeks"),
    "D": ("d", "day", "days"),
    "H": ("h", "hr", "hrs", "hour", "hours"),
    "M": ("m", "min", "mins", "minute", "minutes"),
    "S": ("s", "sec", "secs", "second", "seconds"),
}
UNITS = {name: unit for unit, names in NAMES.items() for name in names}
SECONDS = {"W": 604_800, "D": 86_400, "H": 3600, "M": 60, "S": 1}
LIFECYCLES = (
    "Created",
    "InProgress",
    "WaitingForRetry",
    "Succeeded",
    "SucceededWithSkipped",
    "Failed",
    "TimedOut",
    "Canceled",
    "Skipped",
)
OTHERWISE = {  # other words for them
    "running": "InProgress",
    "retrying": "WaitingForRetry",
    "cancelled": "Canceled",
    "timeout": "TimedOut",
}
PART = re.compile(r"\s*([0-9]{1,9})\s*([a-z]+)", re.IGNORECASE)
PARTS = re.compile(rf"(?:{PART.pattern})+\s*", re.IGNORECASE)
ISO = re.compile(r"p(?=[0-9t])(?:[0-9]+[ymwd])*(?:t(?:[0-9]+[hms])+)?", re.IGNORECASE)


def duration(text: str) -> int:
    """Seconds: 90, 90s, 15m, 2h, 1d, 1h30m, PT15M."""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    parts = _iso_parts(text) if ISO.fullmatch(text) else _parts(text)
    if not parts or not all(unit in SECONDS for _, unit in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is no duration such as 90, 15m or 2h")
    return sum(number * SECONDS[unit] for number, unit in parts)


def interval(text: str) -> str:
    """An interval in ISO 8601: 1h and "1 hour" are PT1H, 15m is PT15M, 1mo is P1M."""
    if ISO.fullmatch(text):
        return text.upper()
    parts = _parts(text)
    if not parts:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no interval such as 15m, 1h, 1d, 1w, 1mo or PT1H30M"
        )
    sums = {unit: sum(n for n, each in parts if each == unit) for unit in NAMES}
    date = "".join(f"{sums[unit]}{unit[0]}" for unit in ("Y", "MO", "W", "D") if sums[unit])
    time = "".join(f"{sums[unit]}{unit}" for unit in ("H", "M", "S") if sums[unit])
    return f"P{date}{'T' if time else ''}{time}" if date or time else "PT0M"


def spelled(seconds: float) -> str:
    """As it can be typed: 43200 is 12h, 90 is 90s."""
    for unit in ("D", "H", "M"):
        if seconds and seconds % SECONDS[unit] == 0:
            return f"{seconds // SECONDS[unit]:g}{unit.lower()}"
    return f"{seconds:g}s"


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """The type of an option with fixed words; case, hyphens and underscores do not matter."""
    choices = {plain(name): name for name in names}

    def word(text: str) -> str:
        if plain(text) not in choices:
            raise argparse.ArgumentTypeError(
                f"invalid choice: '{text}' (choose from {', '.join(choices.values())})"
                + did_you_mean(text, choices.values())
            )
        return choices[plain(text)]

    return word


def lifecycles(text: str) -> str:
    """Of targets, separated by commas, as the API names them: failed,timed-out is Failed,TimedOut."""
    word = one_of(LIFECYCLES)
    return ",".join(OTHERWISE.get(plain(each)) or word(each) for each in text.split(","))


def lifecycles_of_runs(text: str) -> str:
    """The same of runs, which also wait for their targets: that is running too."""
    words = lifecycles(text).split(",")
    return ",".join([*words, *(["WaitingForChildJobExecutions"] if "InProgress" in words else [])])


def plain(text: str) -> str:
    """Without case, hyphens, underscores and spaces."""
    return re.sub(r"[-_ ]", "", text).lower()


def did_you_mean(word: str, names: Iterable[str], *, least_alike: float = 0.6) -> str:
    """`; did you mean NAME?`, or nothing where no name is near."""
    by_plain = {plain(name): name for name in names}
    near = get_close_matches(plain(word), by_plain, n=3, cutoff=least_alike)
    return f"; did you mean {', '.join(by_plain[each] for each in near)}?" if near else ""


def _parts(text: str) -> list[tuple[int, str]]:
    """Numbers with their units; empty where a part is none."""
    if not PARTS.fullmatch(text):
        return []
    parts = [(int(number), UNITS.get(name.lower(), "")) for number, name in PART.findall(text)]
    return parts if all(unit for _, unit in parts) else []


def _iso_parts(text: str) -> list[tuple[int, str]]:
    date, _, time = text.upper().removeprefix("P").partition("T")
    days = [(int(n), "MO" if unit == "M" else unit) for n, unit in re.findall(r"(\d+)(\D)", date)]
    return [*days, *((int(n), unit) for n, unit in re.findall(r"(\d+)(\D)", time))]
