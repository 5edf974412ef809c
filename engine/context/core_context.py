"""The context that the services of one core share."""

from dataclasses import dataclass, field
from datetime import timedelta

from engine.context.cluster_state import ClusterState
from engine.db.control_db import ControlDatabase
from engine.db.wakeups import WakeUps
from engine.process.lease import Lease
from engine.process.metrics import CoreMetrics
from engine.targets.target_access import TargetAccess
from muster.core.clock import Clock


@dataclass(frozen=True, kw_only=True)
class CoreContext:
    cluster_state: ClusterState
    store: ControlDatabase
    lease: Lease  # with the control database
    clock: Clock
    heartbeat: timedelta
    host_patience: timedelta
    capacity: int  # task slots of the account
    targets: TargetAccess
    wakeups: WakeUps = field(default_factory=WakeUps)
    metrics: CoreMetrics = field(default_factory=CoreMetrics)
