"""Writes the rows of one target into the output table: in one transaction they replace what an earlier attempt wrote."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar
from uuid import UUID

import asyncpg
import msgspec

from engine.attempt import output_table
from engine.attempt.canceller import CanceledError, SessionCanceller
from engine.attempt.executor import ExecutorTask
from engine.attempt.output_table import Columns, OutputTable
from engine.attempt.row_spool import SpoolReader
from engine.model.credential import VersionedCredential
from engine.model.output import StepOutput
from engine.model.server import TargetServer
from engine.model.step import Step
from engine.model.task import Task, variable_values
from engine.pgwire.errors import UnexpectedAnswer
from engine.pgwire.result_set import rows_of
from engine.pool.pool import ConnectionPool
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault, NotFound, Unavailable
from muster.core.failpoints import reach

T = TypeVar("T")


class OutputPlace(msgspec.Struct, frozen=True):
    """The reply of the query `output_place`."""

    identity: UUID  # of the control database: sealed secrets are bound to it
    servers: tuple[TargetServer, ...]  # at most one
    credential: VersionedCredential | None
    rejected: bool = False  # the server's private endpoint was


FindPlace = Callable[[Task], Awaitable[OutputPlace]]


class Destination(NamedTuple):
    """What one attempt writes, and where."""

    entry: ExecutorTask
    step: Step
    output: StepOutput
    columns: Columns
    prefix: bytes

    @property
    def name(self) -> str:
        return output_table.writer_name(self.entry.task.target_execution_id)


class OutputWriter:
    def __init__(self, find_place: FindPlace, pool: ConnectionPool) -> None:
        self._find_place = find_place
        self._pool = pool

    async def write(
        self, entry: ExecutorTask, step: Step, path: Path, attempt: int
    ) -> tuple[int, str] | None:
        """How many rows were written, and into which table; None: the script returned no result set.

        Raises Fault, PostgresError and the exceptions of a lost connection; SpoolLost; CanceledError.
        """
        output, options = step.output, step.options.output
        assert output is not None
        with closing(await asyncio.to_thread(SpoolReader, path)) as reader:
            if reader.header.columns is None:
                return None
            columns = output_table.table_columns(reader.header.columns, options)
            prefix = output_table.row_prefix(entry.task, attempt, options)
            destination = Destination(entry, step, output, columns, prefix)
            session = await self._session(destination)
            try:
                with SessionCanceller(
                    session, destination.name, entry.token, entry.deadline
                ) as canceller:
                    table = await _Writing(session, destination, canceller).run(reader)
            except (asyncpg.PostgresError, Fault):  # its reset rolls back
                raise
            except BaseException:
                session.abandon()
                raise
            finally:
                self._pool.give_back(session)
            return reader.rows, table.schema

    async def _session(self, destination: Destination) -> PooledConnection:
        task, output = destination.entry.task, destination.output
        place = await self._find_place(task)
        if not place.servers:
            raise NotFound(
                f"The output's server '{output.server_name}' is not in the account's directory.",
                code="InvalidTargetServer",
            )
        if place.rejected or place.servers[0].disabled:
            why = "has a private endpoint that was rejected" if place.rejected else "is disabled"
            message = f"The output's server '{output.server_name}' {why}."
            raise Unavailable(message, code="ServerDisabled")
        if place.credential is None:
            raise NotFound(
                "No credential is configured for the output: name one in the output, the step or the target"
                " group, a jobCredential on its server, or a defaultCredential on the account.",
                code="CredentialMissing",
            )
        credential = place.credential
        if "$(" in credential.username:
            credential = credential.with_variables(variable_values(task, destination.step))
        lending = asyncio.ensure_future(
            self._pool.lend(
                place.servers[0], output.database_name, credential, place.identity,
                direct=False, deadline=destination.entry.deadline,
            )
        )  # fmt: skip
        token = destination.entry.token
        token.listen(partial(_cancel, lending))
        try:
            return await lending
        except asyncio.CancelledError:
            if token.reason and lending.cancelled():
                raise CanceledError from None
            raise
        finally:
            token.listen(None)


class _Writing:
    def __init__(
        self, session: PooledConnection, destination: Destination, canceller: SessionCanceller
    ) -> None:
        self._session = session
        self._destination = destination
        self._canceller = canceller

    async def run(self, reader: SpoolReader) -> OutputTable:
        destination = self._destination
        output, columns = destination.output, destination.columns
        table = await self._table()
        id = destination.entry.task.target_execution_id
        await self._execute(self._begin(own_path=False))
        await self._lock_out_others(id)
        await self._execute(output_table.delete_rows(table, output, id))
        copy = output_table.copy_rows(table, output, columns)
        await self._sent(self._session.copy_in(copy, _chunks(reader, destination.prefix)))
        await reach("host.output_copied")
        if await self._execute("commit") != "COMMIT":
            raise UnexpectedAnswer("the output was rolled back instead of committed")
        await reach("host.output_committed")
        return table

    async def _table(self) -> OutputTable:
        """Made or widened if it must be, in a transaction of its own: others wait for it only briefly."""
        output, columns = self._destination.output, self._destination.columns
        options = self._destination.step.options.output
        await self._execute(self._begin(own_path=True))
        table = output_table.found(await self._rows(output_table.find_table(output)), output)
        if output_table.changes(table, output, columns, options):
            await self._execute(output_table.lock_table(table, output))
            table = output_table.found(await self._rows(output_table.find_table(output)), output)
            for statement in output_table.changes(table, output, columns, options):
                await self._execute(statement)
        await self._execute("commit")
        return table

    async def _lock_out_others(self, id: UUID) -> None:
        """An attempt that was taken from its host may still be writing."""
        if await self._rows(output_table.lock_writer(id, attempt=True)) != [[True]]:
            await self._execute(output_table.end_other_writers(self._destination.name))
            await self._execute(output_table.lock_writer(id))

    def _begin(self, *, own_path: bool) -> str:
        left = self._destination.entry.deadline - self._session.loop.time()
        name, preset = self._destination.name, self._session.preset
        return output_table.begin(name, left, preset=preset, own_path=own_path)

    async def _execute(self, text: str) -> str:
        return await self._sent(self._session.execute(text))

    async def _rows(self, text: str) -> Sequence[Sequence[object]]:
        return rows_of(await self._sent(self._session.query(text)))

    async def _sent(self, sending: Awaitable[T]) -> T:
        """What the canceller can stop."""
        try:
            self._canceller.mark_sent()
        except CanceledError:
            if asyncio.iscoroutine(sending):
                sending.close()
            raise
        try:
            return await sending
        finally:
            self._canceller.mark_answered()


def _cancel(lending: "asyncio.Future[PooledConnection]") -> None:
    lending.cancel()


async def _chunks(reader: SpoolReader, prefix: bytes) -> AsyncIterator[bytes]:
    chunks = reader.chunks(prefix)
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk
