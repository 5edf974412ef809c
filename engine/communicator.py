"""Stands between the controller and the hosts: knows every host that can be spoken to."""

from engine import instance
from engine.part import Part
from muster.core import telemetry

log = telemetry.get(__name__)


class Communicator(Part):
    name = "communicator"

    async def turn(self) -> None:
        view = self.means.view
        before, now = view.hosts, await instance.hosts(self.means.store)
        for host in now.keys() - before.keys():
            log.info("a host came", host=host, pid=now[host].pid, slots=now[host].slots)
        for host in before.keys() - now.keys():
            log.info("a host went", host=host, pid=before[host].pid)
        view.see(now)
        self.doing = f"knows {len(now)} hosts"
