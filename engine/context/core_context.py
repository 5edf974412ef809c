"""What the services of one core share."""

from dataclasses import dataclass, field
from datetime import timedelta

from engine.context.cluster_state import View
from engine.db.control_db import Store
from engine.db.wakeups import Rings
from engine.process.lease import Lease
from engine.targets.target_access import Targets
from muster.core.clock import Clock


@dataclass(frozen=True, kw_only=True)
class CoreContext:
    view: View
    store: Store
    lease: Lease  # with the control database
    clock: Clock
    heartbeat: timedelta
    host_patience: timedelta
    capacity: int  # targets that are worked on at once
    targets: Targets
    rings: Rings = field(default_factory=Rings)
