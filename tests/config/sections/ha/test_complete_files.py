"""Complete files as Artemis' examples have them: one for each form and role, and what becomes of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.cluster.config import ScaleDownConfig
from atalanta.config.broker_xml import read_broker_xml
from atalanta.ha.manager_config import GuardVoter, ZooKeeperManagerConfig
from atalanta.ha.policy import HaPolicy
from atalanta.ha.policy_elements import ColocationConfig, ReplicationBackup, SharedStoreBackup

DATA = Path(__file__).parents[2] / "data" / "ha"
ZOOKEEPER = ZooKeeperManagerConfig("zoo-1:2181,zoo-2:2181,zoo-3:2181", "brokers", 9000)
TAKEN = {
    "shared-store-primary": (HaPolicy("shared-store", "primary", True), []),
    "shared-store-backup": (HaPolicy("shared-store", "backup", True), []),
    "shared-store-slave-of-artemis-1": (HaPolicy("shared-store", "backup", True), ["failback-delay"]),
    "replication-primary-classic": (
        HaPolicy("replication", "primary", group_name="pair-1", manager=GuardVoter(
            "host-a:62616", voter="host-a:62616", password="peer:secret",
        )),
        ["vote-on-replication-failure", "quorum-size"],
    ),
    "replication-backup": (
        HaPolicy("replication", "backup", group_name="pair-1", manager=GuardVoter(
            "host-a:62616", password="peer:secret",
        )),
        ["max-saved-replicated-journals-size"],
    ),
    "replication-primary-zookeeper": (
        HaPolicy("replication", "primary", allow_failback=True, manager=ZOOKEEPER, coordination_id="pair-1-broker"),
        ["session-ms"],
    ),
    "primary-only": (HaPolicy(), []),
}  # fmt: skip
TAKEN["colocated-shared-store"] = (
    HaPolicy(
        "shared-store", "primary", failover_on_shutdown=True,
        colocation=ColocationConfig(request_backup=True, backup=SharedStoreBackup()),
    ),
    ["scale-down"],
)  # fmt: skip
TAKEN["colocated-replication"] = (
    HaPolicy(
        "replication", "primary",
        manager=GuardVoter("host-a:62616", voter="host-a:62616", password="peer:secret"),
        colocation=ColocationConfig(
            request_backup=True, excluded=["other-connector"], backup=ReplicationBackup(restart_backup=False)
        ),
    ),
    ["vote-on-replication-failure", "restart-backup"],
)  # fmt: skip
SCALE_DOWN = {
    "primary-only": ScaleDownConfig(connectors=["other-connector"]),
    "replication-backup": ScaleDownConfig(connectors=["other-connector"]),
}


def test_each_file_has_its_expectation() -> None:
    assert {path.stem for path in DATA.glob("*.xml")} == set(TAKEN)


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken(name: str) -> None:
    configuration = read_broker_xml(DATA / f"{name}.xml", {})
    policy, without_effect = TAKEN[name]
    assert configuration.ha == policy
    # bindings-directory concerns every form.
    names = [each.name for each in configuration.unsupported if each.name != "bindings-directory"]
    assert names == without_effect
    assert configuration.scale_down == SCALE_DOWN.get(name)
