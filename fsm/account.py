"""The life of a job account."""

from enum import StrEnum

from fsm import account_steps as do
from fsm.lifecycle_table import End, Lifecycle, Rest, Step
from fsm.server import minutes


class S(StrEnum):
    RESERVING = "reserving"
    PREPARING_DATABASE = "preparing_database"
    QUEUING_INSTANCE = "queuing_instance"
    STARTING_INSTANCE = "starting_instance"
    READY = "ready"
    UPDATING = "updating"
    RECOVERING = "recovering"
    DISABLED = "disabled"
    DRAINING = "draining"
    STOPPING_INSTANCE = "stopping_instance"
    RELEASING = "releasing"
    FAILED = "failed"
    DELETE_FAILED = "delete_failed"
    DELETED = "deleted"


LOST = {
    "unhealthy": S.RECOVERING,
    "incompatible": S.DISABLED,
    "database_gone": S.DISABLED,
    "restored": S.DISABLED,
}

# fmt: off
ACCOUNT = Lifecycle("account", (
    #    in state              state       provisioning  does                 then                 within       or else
    Step(S.RESERVING,          "Creating", "Creating",   do.reserve,          S.PREPARING_DATABASE, minutes(1),  S.FAILED),
    Step(S.PREPARING_DATABASE, "Creating", "Creating",   do.prepare_database, S.QUEUING_INSTANCE,  minutes(5),  S.FAILED),
    Step(S.QUEUING_INSTANCE,   "Creating", "Creating",   do.queue_instance,   S.STARTING_INSTANCE, minutes(30), S.FAILED),
    Step(S.STARTING_INSTANCE,  "Creating", "Creating",   do.see_instance,     S.READY,             minutes(10), S.FAILED),
    Rest(S.READY,              "Ready",    "Succeeded",  {"update": S.UPDATING, "delete": S.DRAINING, **LOST}),
    Step(S.UPDATING,           "Updating", "Updating",   do.apply_changes,    S.READY,             minutes(10), S.READY, restores=True, back=S.DISABLED),
    Step(S.RECOVERING,         "Disabled", "Succeeded",  do.recover,          S.READY,             minutes(10), S.DISABLED),
    Rest(S.DISABLED,           "Disabled", "Succeeded",  {"acknowledge": S.RECOVERING, "update": S.UPDATING, "delete": S.DRAINING}, again=S.RECOVERING, tells=True),
    Step(S.DRAINING,           "Deleting", "Deleting",   do.drain,            S.STOPPING_INSTANCE, minutes(30), S.STOPPING_INSTANCE),
    Step(S.STOPPING_INSTANCE,  "Deleting", "Deleting",   do.stop_instance,    S.RELEASING,         minutes(5),  S.DELETE_FAILED),
    Step(S.RELEASING,          "Deleting", "Deleting",   do.release,          S.DELETED,           minutes(1),  S.DELETE_FAILED),
    Rest(S.FAILED,             "Disabled", "Failed",     {"update": S.RESERVING, "delete": S.DRAINING}),
    Rest(S.DELETE_FAILED,      "Deleting", "Failed",     {"delete": S.DRAINING}, again=S.STOPPING_INSTANCE),
    End( S.DELETED),
), shown_as="state", interrupts={"delete": S.DRAINING})
# fmt: on
