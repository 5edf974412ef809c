"""A worker of pgqueuer, set up as its documentation advises; runs in the peer's environment, see peer.py."""

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.core.logconfig import logger
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

DONE = "select count(*) from pgqueuer_log where status = 'successful'"
RECORDED = "select exists (select from pgqueuer_log where job_id = $1 and status = 'successful')"
POLL_INTERVAL = 0.001  # seconds


class Bench:
    def __init__(self, job: dict) -> None:
        self.queue: str = job["queue"]
        self.target: dict = job["target"]
        self.tasks: list[tuple[str, list[str]]] = job["tasks"]
        self.at_once: int = job["at_once"]
        self.free: dict[str, asyncio.Queue[asyncpg.Connection]] = {}

    async def prepare(self) -> None:
        """Durable tables with its own vacuum settings, and open connections to the targets."""
        async with session(self.queue) as connection:
            queries = Queries(AsyncpgDriver(connection))
            await queries.install()
            await queries.optimize_autovacuum()
        databases = list(dict.fromkeys(database for database, _ in self.tasks))
        for number in range(self.at_once):
            name = databases[number % len(databases)]
            connection = await asyncpg.connect(**self.target, database=name, ssl=False)
            self.free.setdefault(name, asyncio.Queue()).put_nowait(connection)

    async def work(self, job: Job) -> None:
        database, texts = self.tasks[int(job.payload or b"0")]
        connection = await self.free[database].get()
        try:
            for text in texts:
                await connection.execute(text)
        finally:
            self.free[database].put_nowait(connection)

    async def drain(self) -> float:
        many = len(self.tasks)
        async with session(self.queue) as connection:
            queries = Queries(AsyncpgDriver(connection))
            await queries.clear_queue_log()
            names = [str(number).encode() for number in range(many)]
            await queries.enqueue(["work"] * many, names, [0] * many)
            await connection.execute("vacuum analyze pgqueuer")
        async with session(self.queue) as connection:
            worker = self._worker(connection)
            began = time.perf_counter()
            await worker.run(
                batch_size=max(1, self.at_once // 2),  # the most that it allows beside at_once
                max_concurrent_tasks=self.at_once,
                mode=QueueExecutionMode.drain,
            )
            seconds = time.perf_counter() - began
        async with session(self.queue) as connection:
            done = await connection.fetchval(DONE)
        if done != many:
            raise SystemExit(f"pgqueuer did {done} of {many} jobs")
        return many / seconds

    async def idle(self) -> float:
        """One job while a worker waits for it."""
        async with session(self.queue) as connection, session(self.queue) as producer:
            worker = self._worker(connection)
            running = asyncio.create_task(worker.run())
            await asyncio.sleep(0.3)
            queries = Queries(AsyncpgDriver(producer))
            began = time.perf_counter()
            (number,) = await queries.enqueue("work", b"0")
            while not await producer.fetchval(RECORDED, number):
                await asyncio.sleep(POLL_INTERVAL)
            seconds = time.perf_counter() - began
            worker.shutdown.set()
            await running
            return seconds * 1000

    def _worker(self, connection: asyncpg.Connection) -> PgQueuer:
        worker = PgQueuer(AsyncpgDriver(connection))
        worker.entrypoint("work")(self.work)
        return worker


@asynccontextmanager
async def session(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def main(file: str) -> None:
    logger.setLevel(logging.WARNING)
    bench = Bench(json.loads(Path(file).read_text()))
    await bench.prepare()
    for command in iter(sys.stdin.readline, ""):
        print(await getattr(bench, command.strip())(), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1]))
