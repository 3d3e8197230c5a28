"""The checks of colocated nodes: who could host whose backup, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.cli.plan.pairs import pairs_of_files
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.colocation import check_colocation
from atalanta.config.checks.findings import CheckedNode, Findings
from atalanta.config.checks.shared_store import without_passive

FILE = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><name>{name}</name>
<journal-directory>{name}/journal</journal-directory>
<connectors><connector name="own">tcp://{host}:61616</connector></connectors>
<acceptors><acceptor name="a">tcp://0.0.0.0:61616</acceptor></acceptors>
<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref></cluster-connection>
</cluster-connections>
<ha-policy><shared-store><colocated>{policy}<primary/><backup/></colocated></shared-store></ha-policy>
</core></configuration>
"""
ASKS = "<request-backup>true</request-backup>"


def files(folder: Path, *policies: str, one_host: bool = False) -> dict[str, Path]:
    """Files of nodes a, b and so on, each on a host of its name."""
    made = {}
    for name, policy in zip("abc", policies, strict=False):
        made[name] = folder / f"{name}.xml"
        made[name].write_text(FILE.format(name=name, host="a" if one_host else name, policy=policy))
    return made


def said(paths: dict[str, Path]) -> list[str]:
    nodes = [CheckedNode(read_broker_xml(path, {})) for path in paths.values()]
    assert without_passive(nodes) == nodes  # all of them serve
    findings = Findings()
    check_colocation(nodes, findings)
    return [f"{each.level}: {each.text}" for each in findings.found]


def test_each_could_host_the_others(tmp_path: Path) -> None:
    assert said(files(tmp_path, ASKS, ASKS, ASKS)) == [
        "info: its backup runs beside one of: b, c",
        "info: its backup runs beside one of: a, c",
        "info: its backup runs beside one of: a, b",
    ]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (ASKS, "<max-backups>0</max-backups>", "warning: no given node can host its backup"),
        (ASKS, "", "info: it hosts backups of others and has none: without its host its messages wait"),
        (
            f"{ASKS}<max-backups>0</max-backups>", ASKS,
            "warning: 2 colocated nodes want a backup, and there is room for 1",
        ),
    ],
)  # fmt: skip
def test_what_is_missing(tmp_path: Path, first: str, second: str, expected: str) -> None:
    assert expected in said(files(tmp_path, first, second))


def test_a_backup_on_the_own_host_is_a_warning(tmp_path: Path) -> None:
    text = "warning: all nodes that could host its backup announce its own host a: they end with it"
    assert said(files(tmp_path, ASKS, ASKS, one_host=True)).count(text) == 2


def test_the_plan_names_the_hosts(tmp_path: Path) -> None:
    pairs = pairs_of_files(files(tmp_path, ASKS, ASKS, ""))
    assert [(each.serves, each.waiting) for each in pairs.hosted()] == [
        ("a", ["beside b", "beside c"]),
        ("b", ["beside a", "beside c"]),
    ]
    assert pairs.backings() == [] and pairs.hosted()[0].decided_by == f"the folder {tmp_path}/a/journal"
