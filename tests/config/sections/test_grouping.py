"""`<grouping-handler>`: as it is read, and what `atalanta check` says of those of several nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.findings import CheckedNode, Findings
from atalanta.config.checks.grouping import check_grouping
from atalanta.config.problems import ConfigError

BROKER_XML = """<configuration><core>
<connectors><connector name="self">tcp://localhost:61616</connector></connectors>
<acceptors><acceptor name="artemis">tcp://localhost:61616</acceptor></acceptors>
<cluster-connections><cluster-connection name="c"><address>{covers}</address>
<connector-ref>self</connector-ref><static-connectors/></cluster-connection></cluster-connections>
{handler}
</core></configuration>"""


def handler(kind: str, address: str = "jms", more: str = "") -> str:
    return (
        f'<grouping-handler name="g"><type>{kind}</type><address>{address}</address>{more}'
        "</grouping-handler>"
    )


def node(folder: Path, name: str, text: str, covers: str = "") -> CheckedNode:
    path = folder / f"{name}.xml"
    path.write_text(BROKER_XML.format(handler=text, covers=covers))
    return CheckedNode(read_broker_xml(path, {}))


def found(*nodes: CheckedNode) -> list[str]:
    findings = Findings()
    check_grouping(list(nodes), findings)
    return [f"{each.level}: {each.text}" for each in findings.found]


def test_it_is_read_with_its_defaults(tmp_path: Path) -> None:
    config = node(tmp_path, "a", handler("LOCAL")).configuration
    assert config.grouping is not None
    assert (config.grouping.name, config.grouping.type, config.grouping.address) == (
        "g", "LOCAL", "jms",
    )  # fmt: skip
    assert (config.grouping.timeout_ms, config.grouping.group_timeout_ms) == (5_000, -1)
    assert config.grouping.reaper_period_ms == 30_000
    assert config.unsupported == []
    more = "<timeout>1</timeout><group-timeout>2</group-timeout><reaper-period>3</reaper-period>"
    config = node(tmp_path, "b", handler("REMOTE", "", more)).configuration
    assert config.grouping is not None
    assert (config.grouping.timeout_ms, config.grouping.group_timeout_ms) == (1, 2)
    assert config.grouping.reaper_period_ms == 3


@pytest.mark.parametrize("text", ['<grouping-handler name="g"/>', handler("BOTH"), 2 * handler("LOCAL")])
def test_a_bad_one_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"a\.xml:\d+"):
        node(tmp_path, "a", text)


def test_one_local_and_the_others_remote(tmp_path: Path) -> None:
    local, other = node(tmp_path, "a", handler("LOCAL")), node(tmp_path, "b", handler("LOCAL"))
    remote = node(tmp_path, "c", handler("REMOTE"))
    none = node(tmp_path, "d", "")
    assert found(local, remote) == []
    assert found(remote) == [], "the others may be elsewhere"
    assert [text[:5] for text in found(local, other)] == ["error"]
    assert "no node has a LOCAL" in found(remote, remote)[0]
    assert "it has no grouping-handler" in found(local, none)[0]
    assert found(none, none) == []


def test_the_address_must_be_covered_and_the_same(tmp_path: Path) -> None:
    local = node(tmp_path, "a", handler("LOCAL", "groups"), "queues,!queues.own")
    assert "no cluster-connection covers its address 'groups'" in found(local)[0]
    good = node(tmp_path, "b", handler("LOCAL", "queues.groups"), "queues")
    assert found(good) == []
    other = node(tmp_path, "c", handler("REMOTE", "queues.others"), "queues")
    assert "its address is 'queues.others'" in found(good, other)[0]


def test_group_timeouts_must_fit(tmp_path: Path) -> None:
    local = node(tmp_path, "a", handler("LOCAL", more="<group-timeout>10000</group-timeout>"))
    never = node(tmp_path, "b", handler("REMOTE"))
    half = node(tmp_path, "c", handler("REMOTE", more="<group-timeout>5000</group-timeout>"))
    assert "groups in use may go elsewhere" in found(local, never)[0]
    assert found(local, half) == []
