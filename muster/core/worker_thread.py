"""Runs pure functions on large inputs in a worker thread, so that the event loop serves other requests meanwhile.

    body = await compute(parse, raw, size=len(raw))

A small input is computed at once: a thread would cost more. There is one thread, since Python computes in one at
a time; what a caller no longer waits for is not begun. A caller that is named in CALLER has one input at a time in
the queue of the thread: its next one waits for its own, and those of others only once.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

LARGE = 64 * 1024  # bytes; a smaller body costs about 5 ms
THREAD = ThreadPoolExecutor(1, thread_name_prefix="large-inputs")
CALLER: ContextVar[str | None] = ContextVar("caller", default=None)  # of the current request
_turns: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = (
    WeakValueDictionary()
)


async def compute(
    function: Callable[[*Arguments], Result], *arguments: *Arguments, size: int
) -> Result:
    """`function` must not touch what the event loop uses: it gets its arguments and returns a result."""
    if size <= LARGE:
        return function(*arguments)
    loop, caller = asyncio.get_running_loop(), CALLER.get()
    turn = asyncio.Lock() if caller is None else _turns.setdefault((loop, caller), asyncio.Lock())
    async with turn:
        return await loop.run_in_executor(THREAD, function, *arguments)
