"""What a type checker knows of the SDK; never run."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime

from muster_sdk import AccountClient, Client, Event, ExecutionPoller, OperationPoller, Pager
from muster_sdk.aio import Client as AsyncClient
from muster_sdk.models import Database, Job, JobExecution, JobExecutionError, Schedule


def synchronous(client: Client) -> Iterator[Event]:
    account: AccountClient = client.account("/subscriptions/s1")
    job: Job = account.jobs.create_or_update(
        "nightly", Job(schedule=Schedule(type="Recurring", interval="P1D"))
    )
    name: str = job.name
    kind: str | None = job.schedule.type if job.schedule else None
    pager: Pager[Job] = account.jobs.list(page_size=10)
    pages: list[list[Job]] = list(pager.by_page())
    run: JobExecution = account.jobs.start(name, limit=3)
    began: datetime | None = run.start_time
    poller: ExecutionPoller = account.jobs.begin_start("nightly")
    lifecycle: str = poller.status()
    errors: list[JobExecutionError] = list(account.executions.list_errors("nightly", run.name))
    database: OperationPoller[Database] = client.server("/s").databases.begin_create_or_update(
        "d", {}
    )
    gone: OperationPoller[None] = client.server("/s").begin_delete(force=True)
    print(kind, pages, began, lifecycle, errors, database.result(), gone)
    yield from account.stream_events(follow=False)


async def asynchronous(client: AsyncClient) -> AsyncIterator[str]:
    account = client.account("/subscriptions/s1")
    run = await (await account.jobs.begin_start("nightly")).result(timeout=10)
    print(run.lifecycle)
    async for job in account.jobs.list():
        yield job.name
