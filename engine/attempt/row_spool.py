"""The rows for an output table on the host's disk, from the target's script until they are written.

A file has a header with the columns, the DataRow messages of the first result set, each with its length, and a footer
with their number and checksum. A file without its footer counts as lost.
"""

import asyncio
import contextlib
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import UUID

import msgspec

from engine.model.task import Task
from engine.pgwire.result_set import ResultSet
from engine.pgwire.result_sink import ResultSink
from engine.pgwire.results import ResultReader

LENGTH, FOOTER = struct.Struct("!I"), struct.Struct("!QI")
END = 0xFFFF_FFFF  # in the place of a length
BUFFER = 256 * 1024  # bytes
CHECKED_BYTES = 1024 * 1024  # after so many the size of the folder is read again
SUFFIX = ".rows"
SPECIAL = re.compile(rb"[\\\n\r\t]")  # in the text format of COPY
ESCAPES = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t"}
UTF8 = "utf-8"


class SpoolLost(Exception):  # noqa: N818 - an event, not an error
    """The file is missing or incomplete."""


class SpoolFailure(NamedTuple):
    message: str
    retry: bool


class SpoolHeader(msgspec.Struct, frozen=True):
    columns: list[tuple[str, int]] | None  # names and types; None: the script returned no rows
    encoding: str = UTF8


class SpoolEntry(NamedTuple):
    """A file of the folder: the target execution that it belongs to."""

    path: Path
    day: date
    run: UUID
    step_id: int
    ordinal: int


class SpoolFolder:
    def __init__(self, folder: Path, limit: int) -> None:
        self.limit = limit  # bytes of all files
        self.written = asyncio.Event()  # rows were written: their files are no longer needed
        self._folder = folder

    def path(self, task: Task, attempt: int) -> Path:
        key = "_".join(map(str, (*task.target_key, attempt)))
        return self._folder / f"{key}{SUFFIX}"

    def create(self, path: Path) -> BinaryIO:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        return path.open("wb", BUFFER)

    def used(self) -> int:
        return sum(_size(path) for path in self._folder.glob(f"*{SUFFIX}"))

    def entries(self) -> list[SpoolEntry]:
        entries = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            day, run, step_id, ordinal, _ = path.stem.split("_")
            entry = SpoolEntry(path, date.fromisoformat(day), UUID(run), int(step_id), int(ordinal))
            entries.append(entry)
        return entries


class RowSpool:
    """A sink that writes the first result set of a script to a file, besides what another sink does."""

    def __init__(self, folder: SpoolFolder, path: Path) -> None:
        self.path = path
        self.failure: SpoolFailure | None = None
        self._folder = folder
        self._file: BinaryIO | None = None
        self._result: ResultSet | None = None
        self._reader: ResultReader
        self._inner: ResultSink
        self._rows = self._crc = self._size = 0
        self._unchecked = CHECKED_BYTES

    def attach(self, reader: ResultReader) -> None:
        self._reader, self._inner = reader, reader.sink
        reader.sink = self

    def detach(self) -> None:
        self._reader.sink = self._inner

    def reset(self) -> None:
        self._inner.reset()

    def begin(self, result: ResultSet, size: int) -> None:
        self._inner.begin(result, size)
        if self._result is not None or self.failure:
            return
        self._result = result
        result.unlimited = True
        names = Counter(name for name, _ in result.columns or ())
        if repeated := [name for name, number in names.items() if number > 1]:
            message = f"The result has several columns with the name '{repeated[0]}'. Give each a name of its own."
            self._fail(message, retry=False)
            return
        self._try_write(
            self._header(SpoolHeader(result.columns or [], self._reader.encoding)), new=True
        )

    def row(self, result: ResultSet, body: bytes) -> None:
        self._inner.row(result, body)
        if result is not self._result or self.failure:
            return
        self._rows += 1
        self._crc = zlib.crc32(body, self._crc)
        self._try_write(LENGTH.pack(len(body)) + body)

    def discard_result(self, result: ResultSet) -> None:
        """The result set was that of a query of ours."""
        if result is self._result:
            self.close_file()
            self._result = None
            self._rows = self._crc = self._size = 0

    def complete(self) -> SpoolFailure | None:
        """After the script, before its commit."""
        if self._result is None:
            self._try_write(self._header(SpoolHeader(None)), new=True)
        self._try_write(LENGTH.pack(END) + FOOTER.pack(self._rows, self._crc))
        try:
            self.close_file()
        except OSError as error:
            self._fail_on(error)
        return self.failure

    def close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def delete(self) -> None:
        try:
            self.close_file()
        finally:
            self.path.unlink(missing_ok=True)

    def _header(self, header: SpoolHeader) -> bytes:
        return msgspec.json.encode(header) + b"\n"

    def _try_write(self, data: bytes, *, new: bool = False) -> None:
        if self.failure:
            return
        self._size += len(data)
        self._unchecked += len(data)
        try:
            if new:
                self._file = self._folder.create(self.path)
            if self._unchecked > CHECKED_BYTES and self._is_full():
                return
            assert self._file is not None
            self._file.write(data)
        except OSError as error:
            self._fail_on(error)

    def _is_full(self) -> bool:
        """The rows of other attempts will go, a result that alone is larger than the limit will not fit later."""
        self._unchecked, limit = 0, self._folder.limit
        if self._folder.used() + BUFFER <= limit:
            return False
        message = f"The rows do not fit on the host's disk: MUSTER_OUTPUT_SPOOL_SIZE is {limit} bytes for all of them."
        self._fail(message, retry=self._size + BUFFER <= limit)
        return True

    def _fail_on(self, error: OSError) -> None:
        self._fail(f"The rows can't be written to the host's disk: {error.strerror}.", retry=True)

    def _fail(self, message: str, *, retry: bool) -> None:
        self.failure = SpoolFailure(message, retry)
        with contextlib.suppress(OSError):
            self.close_file()
        if self._reader.listening:
            self._reader.break_off("its rows can't be kept")


class SpoolReader:
    """The rows of a complete file as lines of COPY; blocks, so its calls belong into a thread."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = path.open("rb", BUFFER)
        except FileNotFoundError:
            raise SpoolLost from None
        try:
            self.header = msgspec.json.decode(self._file.readline(), type=SpoolHeader)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._file.close()
            raise SpoolLost from None
        self.rows = 0

    def close(self) -> None:
        self._file.close()

    def chunks(self, prefix: bytes) -> Iterator[bytes]:
        """Raises SpoolLost at the end when the file is incomplete or was changed. `prefix`: values before each row."""
        lines: list[bytes] = []
        size = crc = 0
        encoding = "" if self.header.encoding == UTF8 else self.header.encoding
        while (length := self._length()) != END:
            body = self._read(length)
            crc = zlib.crc32(body, crc)
            self.rows += 1
            line = copy_line(prefix, body, encoding)
            lines.append(line)
            size += len(line)
            if size >= BUFFER:
                yield b"".join(lines)
                lines, size = [], 0
        if FOOTER.unpack(self._read(FOOTER.size)) != (self.rows, crc):
            raise SpoolLost
        yield b"".join(lines)

    def _length(self) -> int:
        (length,) = LENGTH.unpack(self._read(LENGTH.size))
        return int(length)

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) != size:
            raise SpoolLost
        return data


def copy_line(prefix: bytes, body: bytes, encoding: str = "") -> bytes:
    """A DataRow message, after other values, in COPY's text format."""
    values = [prefix]
    at = 2
    for _ in range(int.from_bytes(body[:2], "big")):
        size = int.from_bytes(body[at : at + 4], "big", signed=True)
        at += 4
        if size < 0:
            values.append(b"\\N")
            continue
        value = body[at : at + size]
        at += size
        values.append(escaped(value.decode(encoding, "replace").encode() if encoding else value))
    return b"\t".join(values) + b"\n"


def escaped(value: bytes) -> bytes:
    return SPECIAL.sub(lambda match: ESCAPES[match[0]], value) if SPECIAL.search(value) else value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
