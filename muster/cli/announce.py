"""Prints what is being done, and every few seconds that it is still being done."""

import contextlib
import threading
import time
from collections.abc import Iterator

INTERVAL = 4.0  # seconds


@contextlib.contextmanager
def announced(text: str, interval: float = INTERVAL) -> Iterator[None]:
    """Prints `text …` at once and a line with the elapsed seconds per interval until the block ends."""
    print(f"{text} …", flush=True)
    ended, began = threading.Event(), time.monotonic()

    def repeat() -> None:
        while not ended.wait(interval):
            print(f"  … {time.monotonic() - began:.0f} s", flush=True)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
