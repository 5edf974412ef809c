"""The end of a resource group; its life before needs no work."""

from enum import StrEnum

from fsm import children
from fsm.lifecycle_table import End, Lifecycle, Rest, Step
from fsm.server import minutes


class S(StrEnum):
    DELETING = "deleting"
    DELETE_FAILED = "delete_failed"
    DELETED = "deleted"


# fmt: off
RESOURCE_GROUP = Lifecycle("resourceGroup", (
    #    in state         shows       provisioning  does             then       within        or else
    Step(S.DELETING,      "Deleting", "Deleting",   children.remove, S.DELETED, minutes(60),  S.DELETE_FAILED),
    Rest(S.DELETE_FAILED, "Deleting", "Failed",     {"delete": S.DELETING}, again=S.DELETING),
    End( S.DELETED),
), shown_as=None, interrupts={"delete": S.DELETING})
# fmt: on
