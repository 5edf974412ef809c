"""Reads scripts that others wrote, within a time limit and without blocking the event loop.

    analysis = await analyse(text, "auto")     # muster.core.script.Analysis

A short text is read at once: it costs a few milliseconds at most. A longer one is read by a worker process that ends when
the text needs too much CPU time; the answer is then a Problem, as for every other script that can't be run. On a machine
so busy that no answer comes in time the answer is Unavailable. Workers are started when they are needed, and end with
their input, so also when this process is killed. A caller that is named has one worker at a time: its next script waits
for its own, not those of others.
"""

import asyncio
import atexit
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

import msgspec

from muster.core.errors import Unavailable
from muster.core.script import TOO_COMPLEX, Analysis, Transaction
from muster.core.script import analyse as read_at_once
from muster.core.script_worker import Request, receive, send
from muster.core.sqltext import Problem
from muster.core.statements import Script

SHORT = 4 * 1024  # characters; the worst such text costs about 30 ms
CPU_LIMIT = 10.0  # seconds of CPU for one script; the largest takes about 2
REPLY_TIMEOUT = 25.0  # seconds; less than a request may take
AT_ONCE = 2


class Worker:
    """One process; after any failure it is killed and replaced."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-m", "muster.core.script_worker"]
        self.is_new = True
        self._process = subprocess.Popen(  # noqa: S603 - nothing of it is foreign
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
        )

    @property
    def ran_out_of_cpu(self) -> bool:
        """Of a process that ended."""
        return self._process.wait() == -signal.SIGPROF

    def ask(self, request: bytes, timeout: float) -> bytes:
        """TimeoutError: no reply in time. EOFError: the process ended."""
        process, late = self._process, threading.Event()
        assert process.stdin
        assert process.stdout

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, give_up)
        timer.start()
        try:
            send(process.stdin, request)
            answer = receive(process.stdout)
        except OSError:
            answer = None
        finally:
            timer.cancel()
        if answer is None:
            raise TimeoutError if late.is_set() else EOFError
        return answer

    def end(self) -> None:
        process = self._process
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
        process.wait()


class Reader:
    def __init__(self, cpu_limit: float = CPU_LIMIT, timeout: float = REPLY_TIMEOUT) -> None:
        self._cpu_limit = cpu_limit
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="script-reader")
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def close(self) -> None:
        self._threads.shutdown()
        while (worker := self._take()) is not None:
            worker.end()

    async def analyse(
        self, text: str, transaction: Transaction = "auto", caller: str | None = None
    ) -> Analysis:
        loop = asyncio.get_running_loop()
        if caller is None:
            return await loop.run_in_executor(self._threads, self.read, text, transaction)
        turn = self._turns.setdefault(caller, asyncio.Lock())
        await turn.acquire()
        reading = loop.run_in_executor(self._threads, self.read, text, transaction)
        # Not when the request is cancelled: the worker is busy until then.
        reading.add_done_callback(lambda _: turn.release())
        return await asyncio.shield(reading)

    def read(self, text: str, transaction: Transaction) -> Analysis:
        request = msgspec.msgpack.encode(Request(text, transaction, self._cpu_limit))
        while True:
            worker = self._take() or _start()
            is_new = worker.is_new
            try:
                answer = worker.ask(request, self._timeout)
            except TimeoutError:
                worker.end()
                message = "The script could not be read in time: the machine is busy."
                raise Unavailable(message, code="ScriptReaderBusy", retry_after=5) from None
            except EOFError:
                too_complex = worker.ran_out_of_cpu
                worker.end()
                # A used worker may have been killed by others; a new one ended over this text.
                if is_new or too_complex:
                    return _unread(text)
            else:
                worker.is_new = False
                self._idle.put(worker)
                return msgspec.msgpack.decode(answer, type=Analysis)

    def _take(self) -> Worker | None:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return None


def _start() -> Worker:
    try:
        return Worker()
    except OSError as error:
        message = "Scripts can't be read right now: no process can be started."
        raise Unavailable(message, context=str(error), retry_after=5) from error


READER = Reader()
atexit.register(READER.close)


async def analyse(
    text: str, transaction: Transaction = "auto", caller: str | None = None
) -> Analysis:
    if len(text) <= SHORT:
        return read_at_once(text, transaction)
    return await READER.analyse(text, transaction, caller)


def _unread(text: str) -> Analysis:
    message = "The script is too complex to be read."
    problem = Problem(0, TOO_COMPLEX, message, "Split it into several steps.")
    return Analysis(Script(text, (), message), (problem,))
