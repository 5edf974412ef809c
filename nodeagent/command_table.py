"""The commands that a node agent runs: their arguments, results, rights and time limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

import msgspec

from nodeagent.items import (
    Ask,
    Asked,
    Canceled,
    CancelExecution,
    ContinueExecution,
    DecidePrivateEndpoint,
    Deleted,
    DeleteItem,
    DeliveriesReplayed,
    Diagnose,
    Diagnosed,
    ExecutionRead,
    GetItem,
    Item,
    Items,
    JournalRead,
    ListItems,
    PatchItem,
    PutCredential,
    PutJob,
    PutJobWithSteps,
    PutPrivateEndpoint,
    PutStep,
    PutTargetGroup,
    PutWebhook,
    ReachedServers,
    ReadExecution,
    ReadJournal,
    ReadReachedServers,
    ReadRequest,
    ReadServerUsers,
    ReplayDeliveries,
    RequestRead,
    RerunExecution,
    RetryTarget,
    RunQuery,
    SendTestEvent,
    ServerUsers,
    StartJob,
    TestEventSent,
    Written,
)
from nodeagent.protocol import (
    Class,
    DirectorySynced,
    Drain,
    Draining,
    EpochRead,
    InstallSchema,
    Pause,
    Paused,
    ReadEpoch,
    RemoveSchema,
    Resume,
    SchemaInstalled,
    SchemaRemoved,
    SchemaUpgraded,
    SchemaVerified,
    SyncDirectory,
    UpgradeSchema,
    VerifySchema,
)


@dataclass(frozen=True)
class Spec:
    name: str
    args: type[msgspec.Struct]
    result: type[msgspec.Struct]
    cls: Class
    repeatable: bool  # read-only: not journalled, runs again each time
    seconds: float  # what it may take
    function: str | None = None  # in the control database; None: the administrator's statements
    sealed: tuple[str, ...] = ()  # arguments that are secrets

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self.seconds)


_A, _O = Class.ADMINISTER, Class.OPERATE
_PASSWORDS = ("agent_password", "engine_password")
# fmt: off
COMMANDS: Mapping[str, Spec] = MappingProxyType({spec.name: spec for spec in (
    #    name              arguments      result           class  repeatable
    Spec("install_schema", InstallSchema, SchemaInstalled, _A, False, 15, sealed=_PASSWORDS),
    Spec("upgrade_schema", UpgradeSchema, SchemaUpgraded,  _A, False, 15),
    Spec("remove_schema",  RemoveSchema,  SchemaRemoved,   _A, False, 15),
    Spec("verify_schema",  VerifySchema,  SchemaVerified,  _O, True,  5, function="verify_schema"),
    Spec("sync_directory", SyncDirectory, DirectorySynced, _O, False, 10, function="sync_directory", sealed=("client_keys",)),
    Spec("read_epoch",     ReadEpoch,     EpochRead,       _O, True,  5, function="read_epoch"),
    Spec("drain",          Drain,         Draining,        _O, False, 5, function="set_draining"),
    Spec("pause",          Pause,         Paused,          _O, False, 5, function="set_paused"),
    Spec("resume",         Resume,        Paused,          _O, False, 5, function="set_paused"),
    Spec("get_item",       GetItem,       Item,            _O, True,  5, function="get_item"),
    Spec("list_items",     ListItems,     Items,           _O, True,  10, function="list_items"),
    Spec("read_execution", ReadExecution, ExecutionRead,   _O, True,  15, function="read_execution"),
    Spec("put_credential", PutCredential, Written,         _O, False, 10, function="put_credential", sealed=("secret",)),
    Spec("put_target_group", PutTargetGroup, Written,      _O, False, 15, function="put_target_group"),
    Spec("put_job",        PutJob,        Written,         _O, False, 10, function="put_job"),
    Spec("put_job_with_steps", PutJobWithSteps, Written, _O, False, 15, function="put_job_with_steps"),
    Spec("put_step",       PutStep,       Written,         _O, False, 10, function="put_step"),
    Spec("patch_item",     PatchItem,     Written,         _O, False, 10, function="patch_item"),
    Spec("put_private_endpoint", PutPrivateEndpoint, Written, _O, False, 10, function="put_private_endpoint"),
    Spec("decide_private_endpoint", DecidePrivateEndpoint, Item, _O, False, 10, function="decide_private_endpoint"),
    Spec("put_webhook",    PutWebhook,    Written,         _O, False, 10, function="put_webhook", sealed=("secret",)),
    Spec("send_test_event",   SendTestEvent,   TestEventSent,   _O, False, 5, function="send_test_event"),
    Spec("replay_deliveries", ReplayDeliveries, DeliveriesReplayed, _O, False, 10, function="replay_deliveries"),
    Spec("delete_item",    DeleteItem,    Deleted,         _O, False, 15, function="delete_item"),
    Spec("start_job",      StartJob,      Written,         _O, False, 10, function="start_job"),
    Spec("cancel_execution", CancelExecution, Canceled,    _O, False, 10, function="cancel_execution"),
    Spec("continue_execution", ContinueExecution, Written, _O, False, 10, function="continue_execution"),
    Spec("rerun_execution", RerunExecution, Written,       _O, False, 15, function="rerun_execution"),
    Spec("retry_target",   RetryTarget,   Written,         _O, False, 10, function="retry_target"),
    Spec("run_query",      RunQuery,      Written,         _O, False, 10, function="run_query"),
    Spec("ask",            Ask,           Asked,           _O, False, 5, function="create_request"),
    Spec("read_request",   ReadRequest,   RequestRead,     _O, True,  5, function="read_request"),
    Spec("diagnose",       Diagnose,      Diagnosed,       _O, True,  5, function="diagnose"),
    Spec("read_server_users", ReadServerUsers, ServerUsers, _O, True, 10, function="read_server_users"),
    Spec("read_reached_servers", ReadReachedServers, ReachedServers, _O, True, 10, function="reached_servers"),
    Spec("read_journal",   ReadJournal,   JournalRead,     _O, True,  5, function="read_journal"),
)})
# fmt: on
SPECS: Mapping[type[msgspec.Struct], Spec] = {spec.args: spec for spec in COMMANDS.values()}
