"""What each command does, one module each."""

from collections.abc import Awaitable, Callable, Mapping

from nodeagent.commands import (
    ask,
    cancel_execution,
    decide_private_endpoint,
    delete_item,
    drain,
    get_item,
    install_schema,
    list_items,
    patch_item,
    pause,
    put_credential,
    put_job,
    put_private_endpoint,
    put_step,
    put_target_group,
    read_epoch,
    read_execution,
    read_journal,
    read_request,
    remove_schema,
    resume,
    run_query,
    start_job,
    sync_directory,
    upgrade_schema,
    verify_schema,
)
from nodeagent.work import Work

Handler = Callable[[Work], Awaitable[str]]  # answers with the result as JSON

HANDLERS: Mapping[str, Handler] = {
    "install_schema": install_schema.run,
    "upgrade_schema": upgrade_schema.run,
    "remove_schema": remove_schema.run,
    "verify_schema": verify_schema.run,
    "sync_directory": sync_directory.run,
    "read_epoch": read_epoch.run,
    "drain": drain.run,
    "pause": pause.run,
    "resume": resume.run,
    "get_item": get_item.run,
    "list_items": list_items.run,
    "read_execution": read_execution.run,
    "put_credential": put_credential.run,
    "put_target_group": put_target_group.run,
    "put_job": put_job.run,
    "put_step": put_step.run,
    "patch_item": patch_item.run,
    "put_private_endpoint": put_private_endpoint.run,
    "decide_private_endpoint": decide_private_endpoint.run,
    "delete_item": delete_item.run,
    "start_job": start_job.run,
    "cancel_execution": cancel_execution.run,
    "run_query": run_query.run,
    "ask": ask.run,
    "read_request": read_request.run,
    "read_journal": read_journal.run,
}
