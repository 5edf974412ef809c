"""Mistakes that a type checker finds; an ignore that is not needed is an error of its own."""

from muster_sdk import Client
from muster_sdk.models import Job, JobStep


def mistakes(client: Client) -> None:
    account = client.account("/subscriptions/s1")
    Job(descriptions="")  # type: ignore[call-arg]
    JobStep()  # type: ignore[call-arg]
    client.jobs  # type: ignore[attr-defined]
    account.jobs.get(1)  # type: ignore[arg-type]
    account.jobs.start("nightly", limits=3)  # type: ignore[call-arg]
    account.jobs.get("nightly").schedule.type  # type: ignore[union-attr]
    print(account.jobs.begin_start("nightly").result().lifecycle + 1)  # type: ignore[operator]
