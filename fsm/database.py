"""The life of a database on a server."""

from enum import StrEnum

from fsm import database_steps as do
from fsm.lifecycle_table import End, Lifecycle, Rest, Step
from fsm.server import minutes


class S(StrEnum):
    LOOKING = "looking"
    CREATING = "creating"
    VERIFYING = "verifying"
    READY = "ready"
    UPDATING = "updating"
    DROPPING = "dropping"
    FAILED = "failed"
    DELETE_FAILED = "delete_failed"
    DELETED = "deleted"


# Azure's DatabaseStatus has no word for deleting or failed; the nearest ones are shown.
# fmt: off
DATABASE = Lifecycle("database", (
    #    in state         status      provisioning  does        then         within       or else
    Step(S.LOOKING,       "Creating", "Creating",   do.look,    S.CREATING,  minutes(15), S.FAILED),
    Step(S.CREATING,      "Creating", "Creating",   do.create,  S.VERIFYING, minutes(10), S.FAILED),
    Step(S.VERIFYING,     "Creating", "Creating",   do.inspect, S.READY,     minutes(1),  S.FAILED),
    Rest(S.READY,         "Online",   "Succeeded",  {"update": S.UPDATING, "delete": S.DROPPING}),
    Step(S.UPDATING,      "Online",   "Updating",   do.inspect, S.READY,     minutes(1),  S.READY, restores=True),
    Step(S.DROPPING,      "Stopping", "Deleting",   do.drop,    S.DELETED,   minutes(10), S.DELETE_FAILED),
    Rest(S.FAILED,        "Disabled", "Failed",     {"update": S.LOOKING, "delete": S.DROPPING}),
    Rest(S.DELETE_FAILED, "Stopping", "Failed",     {"delete": S.DROPPING}, again=S.DROPPING),
    End( S.DELETED),
), shown_as="status", interrupts={"delete": S.DROPPING})
# fmt: on
