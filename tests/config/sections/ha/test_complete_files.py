"""Complete files as Artemis' examples have them: one for each form and role, and what becomes of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.cluster.config import ScaleDownConfig
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError
from atalanta.ha.manager_config import ZooKeeperManager
from atalanta.ha.policy import HaPolicy
from atalanta.ha.policy_elements import Colocation, ReplicationBackup, SharedStoreBackup

DATA = Path(__file__).parents[2] / "data" / "ha"
ZOOKEEPER = ZooKeeperManager("zoo-1:2181,zoo-2:2181,zoo-3:2181", "brokers", 9000)
TAKEN = {
    "shared-store-primary": (HaPolicy("shared-store", "primary", True), []),
    "shared-store-backup": (HaPolicy("shared-store", "backup", True), []),
    "shared-store-slave-of-artemis-1": (HaPolicy("shared-store", "backup", True), ["failback-delay"]),
    "replication-primary-classic": (
        HaPolicy("replication", "primary", group_name="pair-1"),
        ["check-for-active-server", "vote-on-replication-failure", "quorum-size", "ha-policy"],
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
        colocation=Colocation(request_backup=True, backup=SharedStoreBackup()),
    ),
    ["scale-down"],
)  # fmt: skip
TAKEN["colocated-replication"] = (
    HaPolicy(
        "replication", "primary", allow_failback=True,
        colocation=Colocation(
            request_backup=True, excluded=["other-connector"], backup=ReplicationBackup(restart_backup=False)
        ),
    ),
    ["vote-on-replication-failure", "restart-backup", "ha-policy"],
)  # fmt: skip
REFUSED = {
    "replication-backup": "replication-backup.xml:12: this file describes a backup by replication",
}


def test_each_file_has_its_expectation() -> None:
    assert {path.stem for path in DATA.glob("*.xml")} == {*TAKEN, *REFUSED}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken(name: str) -> None:
    configuration = read_broker_xml(DATA / f"{name}.xml", {})
    policy, without_effect = TAKEN[name]
    assert configuration.ha == policy
    # bindings-directory concerns every form.
    names = [each.name for each in configuration.unsupported if each.name != "bindings-directory"]
    assert names == without_effect
    expected = ScaleDownConfig(connectors=["other-connector"]) if name == "primary-only" else None
    assert configuration.scale_down == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_broker_xml(DATA / f"{name}.xml", {})
    (problem,) = error.value.problems
    assert REFUSED[name] in str(problem) and problem.hint
