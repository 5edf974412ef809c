"""Logs as JSON lines on stderr and numbers for Prometheus; neither ever carries a secret or a body."""

import contextlib
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from muster.core.settings import Settings

MASK = "***"
SECRET_WORDS = ("password", "passwd", "token", "secret", "authorization", "credential", "key")
HARMLESS = frozenset({"key_id", "idempotency_key_present"})  # a name of a key is no key
IN_TEXT = re.compile(r"(://[^:/@\s]*:)[^@\s]+@|(\b[Bb]earer\s+)\S+")
LONGEST = 4_000  # a value longer than this is a document, not a field of a log line

REGISTRY = CollectorRegistry()
REQUESTS = Counter(
    "muster_api_requests",
    "Requests to this API, by method, resource type and status",
    ["method", "type", "status"],
    registry=REGISTRY,
)
REQUEST_SECONDS = Histogram(
    "muster_api_request_seconds",
    "Time to answer a request to this API",
    ["method", "type"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
    registry=REGISTRY,
)
UNAUTHENTICATED = Counter(
    "muster_unauthenticated_requests",
    "Requests that were refused with 401, by error code",
    ["listener", "code"],
    registry=REGISTRY,
)


def setup(role: str, settings: Settings) -> None:
    """Once per process, before its first line."""
    _configure(logging.getLevelNamesMapping().get(settings.log_level.upper(), logging.INFO))
    structlog.contextvars.bind_contextvars(role=role)


def _configure(level: int) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            describe_exception,
            mask,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: Logger(sys.stderr),
        cache_logger_on_first_use=False,
    )


class Logger(structlog.WriteLogger):
    """A line that can't be written (full disk, closed pipe) is lost; what it reports on goes on."""

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().msg(message)

    log = debug = info = warn = warning = error = critical = fatal = failure = exception = msg


def get(name: str) -> Any:
    return structlog.get_logger(source=name)


def note_refusal(listener: str, status: int, code: str, why: str, address: str, **ids: Any) -> None:
    """Every 401 and 403: where it came from and why, never the token; a 401 is counted too."""
    log = get(__name__)
    if status == 401:
        UNAUTHENTICATED.labels(listener, code).inc()
        log.warning(
            "authentication failed", listener=listener, address=address, code=code, why=why, **ids
        )
    elif status == 403:
        log.warning("request denied", listener=listener, address=address, code=code, why=why, **ids)


def metrics() -> bytes:
    return generate_latest(REGISTRY)


def mask(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """The last processor before the renderer, so that nothing is added after it."""
    return {name: _safe(name, value) for name, value in event.items()}


def describe_exception(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Class, message and stack; never the values of local variables."""
    exception = event.pop("exc_info", None)
    if not exception:
        return event
    error = exception if isinstance(exception, BaseException) else sys.exc_info()[1]
    if error is not None:
        event["error"] = f"{type(error).__name__}: {error}"
        event["stack"] = _stack(error)
    return event


def _stack(error: BaseException) -> list[str]:
    lines: list[str] = []
    trace = error.__traceback__
    while trace is not None and len(lines) < 50:
        code = trace.tb_frame.f_code
        lines.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return lines


def _safe(name: str, value: Any) -> Any:
    """Also inside of what was handed over whole."""
    lowered = name.lower()
    if lowered not in HARMLESS and any(word in lowered for word in SECRET_WORDS):
        return MASK
    match value:
        case None | bool() | int() | float():
            safe: Any = value
        case str():
            text = IN_TEXT.sub(lambda m: f"{m[1]}{MASK}@" if m[1] else f"{m[2]}{MASK}", value)
            safe = text if len(text) <= LONGEST else text[:LONGEST] + "…"
        case Mapping():
            safe = {str(k): _safe(str(k), v) for k, v in value.items()}
        case bytes() | bytearray():
            safe = f"{len(value)} bytes"
        case Sequence():
            safe = [_safe(name, item) for item in value]
        case _:  # a Secret prints itself as ***
            safe = _safe(name, str(value))
    return safe


# structlog's own default prints local variables of every frame, secrets among them.
_configure(logging.INFO)
