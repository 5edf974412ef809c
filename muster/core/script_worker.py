"""`python -P -m muster.core.script_worker`: reads scripts for muster/core/script_reader.py until its input ends.

Each message is its size in four bytes and the message itself. It has no secret and few resources, and may be killed.
"""

import contextlib
import resource
import signal
import struct
import sys
from typing import IO

import msgspec

from muster.core.script import Analysis, Transaction, analyse

SIZE = struct.Struct("!I")
MOST_MEMORY = 2 * 1024**3  # bytes of addresses


class Request(msgspec.Struct, array_like=True):
    text: str
    transaction: Transaction
    limit: float  # seconds of CPU; a script that needs more ends this process


def receive(stream: IO[bytes]) -> bytes | None:
    """The next message; None when there is none."""
    size = stream.read(SIZE.size)
    if len(size) < SIZE.size:
        return None
    (length,) = SIZE.unpack(size)
    message = stream.read(length)
    return message if len(message) == length else None


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(SIZE.pack(len(message)) + message)
    stream.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us by closing the pipe
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    encode, decode = msgspec.msgpack.encode, msgspec.msgpack.Decoder(Request).decode
    while (message := receive(sys.stdin.buffer)) is not None:
        request = decode(message)
        # The default action of SIGPROF ends the process, also inside the grammar's C code.
        signal.setitimer(signal.ITIMER_PROF, request.limit)
        analysis: Analysis = analyse(request.text, request.transaction)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(sys.stdout.buffer, encode(analysis))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
