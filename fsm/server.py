"""The life of a server, registered or embedded."""

from datetime import timedelta
from enum import StrEnum

from fsm import server_steps as do
from fsm.lifecycle_table import End, Lifecycle, Rest, Step
from fsm.server_contact import NOT_VERIFIED


class S(StrEnum):
    RESERVING = "reserving"
    MAKING = "making"
    STARTING = "starting"
    VERIFYING = "verifying"
    READY = "ready"
    UPDATING = "updating"
    REMOVING_CHILDREN = "removing_children"
    STOPPING = "stopping"
    REMOVING = "removing"
    FAILED = "failed"
    DELETE_FAILED = "delete_failed"
    DELETED = "deleted"


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


# fmt: off
SERVER = Lifecycle("server", (
    #    in state             state       provisioning  does                then                 within       or else
    Step(S.RESERVING,         "Creating", "Creating",   do.reserve,         S.MAKING,            minutes(1),  S.FAILED),
    Step(S.MAKING,            "Creating", "Creating",   do.make_cluster,    S.STARTING,          minutes(5),  S.FAILED),
    Step(S.STARTING,          "Creating", "Creating",   do.start_cluster,   S.VERIFYING,         minutes(5),  S.FAILED),
    Step(S.VERIFYING,         "Creating", "Creating",   do.verify,          S.READY,             minutes(1),  S.FAILED),
    Rest(S.READY,             "Ready",    "Succeeded",  {"update": S.UPDATING, "delete": S.REMOVING_CHILDREN}, unless=NOT_VERIFIED),
    Step(S.UPDATING,          "Updating", "Updating",   do.apply_changes,   S.READY,             minutes(1),  S.READY, restores=True),
    Step(S.REMOVING_CHILDREN, "Deleting", "Deleting",   do.remove_children, S.STOPPING,          minutes(30), S.DELETE_FAILED),
    Step(S.STOPPING,          "Deleting", "Deleting",   do.stop_cluster,    S.REMOVING,          minutes(5),  S.DELETE_FAILED),
    Step(S.REMOVING,          "Deleting", "Deleting",   do.remove_cluster,  S.DELETED,           minutes(5),  S.DELETE_FAILED),
    Rest(S.FAILED,            "Disabled", "Failed",     {"update": S.RESERVING, "delete": S.REMOVING_CHILDREN}),
    Rest(S.DELETE_FAILED,     "Deleting", "Failed",     {"delete": S.REMOVING_CHILDREN}, again=S.REMOVING_CHILDREN),
    End( S.DELETED),
), shown_as="state", interrupts={"delete": S.REMOVING_CHILDREN})
# fmt: on
