"""Where rows go as they arrive."""

from typing import Protocol

from engine.pgwire.result_set import ResultSet, row_values

KEPT_ROWS, KEPT_BYTES = 1_000, 1024 * 1024  # of one result set
KEPT_BYTES_IN_ALL = 4 * 1024 * 1024


class ResultSink(Protocol):
    """Receives every row of the result sets that a reader keeps; counters and digest are the reader's."""

    def reset(self) -> None:
        """Results of the next caller follow."""

    def begin(self, result: ResultSet, size: int) -> None:
        """A result set begins; its row description has `size` bytes."""

    def row(self, result: ResultSet, body: bytes) -> None:
        """A DataRow message; it has all columns of the description, and is counted already."""


class FirstRows:
    """Keeps the first rows of each result set in memory and marks it as truncated if there are more."""

    def __init__(self) -> None:
        self._kept = 0  # bytes

    def reset(self) -> None:
        self._kept = 0

    def begin(self, result: ResultSet, size: int) -> None:
        self._kept += size
        if self._kept > KEPT_BYTES_IN_ALL:
            result.truncated = True
            result.columns = []

    def row(self, result: ResultSet, body: bytes) -> None:
        if result.truncated:
            return
        size = len(body)
        if (
            result.count > KEPT_ROWS
            or result.size > KEPT_BYTES
            or self._kept + size > KEPT_BYTES_IN_ALL
        ):
            result.truncated = True
            return
        self._kept += size
        result.rows.append(row_values(body, result.decoders))
