from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from engine.process.exit_codes import Disagreement
from engine.db.membership import InstanceState, HostRow, MembershipSnapshot
from engine.context.cluster_state import ClusterState

BEAT = InstanceState(paused=False, draining=False, schema_version=3, directory_revision=5)
HOST = HostRow(UUID(int=1), "machine", 42, 100, "live", datetime(2026, 1, 1, tzinfo=UTC))


def look(beat: InstanceState = BEAT, *hosts: HostRow) -> MembershipSnapshot:
    return MembershipSnapshot(beat, {host.host_id: host for host in hosts})


def test_ordinary_changes_are_followed():
    cluster_state = ClusterState.of(look(BEAT, HOST))

    cluster_state.update(replace(BEAT, paused=True, directory_revision=6))

    assert not cluster_state.open and cluster_state.beat.directory_revision == 6


@pytest.mark.parametrize(
    "change", [{"directory_revision": 4}, {"schema_version": 4}, {"schema_version": 2}]
)
def test_what_no_ordinary_change_leads_to_is_a_disagreement(change):
    cluster_state = ClusterState.of(look())

    with pytest.raises(Disagreement):
        cluster_state.update(replace(BEAT, **change))


def test_memory_that_agrees_differs_in_nothing_though_hearts_beat_on():
    cluster_state = ClusterState.of(look(BEAT, HOST))
    later = replace(HOST, heartbeat_at=datetime(2026, 1, 2, tzinfo=UTC))

    assert (
        cluster_state.differences(look(replace(BEAT, directory_revision=9), later)) == frozenset()
    )


@pytest.mark.parametrize(
    ("there", "wrong"),
    [
        (look(replace(BEAT, paused=True), HOST), "paused is True in the database and False here"),
        (
            look(replace(BEAT, draining=True), HOST),
            "draining is True in the database and False here",
        ),
        (look(BEAT), f"host {HOST.host_id} has no row"),
        (
            look(BEAT, HOST, replace(HOST, host_id=UUID(int=2))),
            f"host {UUID(int=2)} has a row and is missing here",
        ),
        (look(BEAT, replace(HOST, state="draining")), f"host {HOST.host_id} is draining"),
    ],
)
def test_each_mistake_is_a_sentence(there, wrong):
    assert ClusterState.of(look(BEAT, HOST)).differences(there) == {wrong}
