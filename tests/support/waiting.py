"""What a wait that timed out says: the condition, where it stands, and what it returned last."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST = 300  # characters of a condition

ROOT = Path(__file__).parents[2]


def timed_out(check: Callable[..., Any], seconds: float, last: Any, what: str = "") -> str:
    condition = what or " ".join(_source(check).split())[:LONGEST]
    return f"not within {seconds:g} s: {condition}{_place(check)}; the last value was {last!r}"


def _source(check: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(check)
    except (OSError, TypeError):
        return repr(check)


def _place(check: Callable[..., Any]) -> str:
    code = getattr(check, "__code__", None)
    if code is None:
        return ""
    file = Path(code.co_filename)
    shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    return f" ({shown}:{code.co_firstlineno})"
