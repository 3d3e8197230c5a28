"""`atalanta check` of network connectors: the permissions of the user of a bridge at the other broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.instance.check_rig import call, told

BROKER = """<beans xmlns="http://www.springframework.org/schema/beans">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}" dataDirectory="${{activemq.data}}">
    {networks}
    <plugins>
      <simpleAuthenticationPlugin>
        <users><authenticationUser username="bridge" password="secret" groups="bridges"/></users>
      </simpleAuthenticationPlugin>
      {authorization}
    </plugins>
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""
CONNECTOR = """<networkConnectors>
      <networkConnector name="to-south" uri="static:(tcp://127.0.0.1:61617)" duplex="{duplex}" userName="bridge"
                        password="secret"/>
    </networkConnectors>"""
AUTHORIZATION = """<authorizationPlugin><map><authorizationMap><authorizationEntries>
        {entries}
      </authorizationEntries></authorizationMap></map></authorizationPlugin>"""
ALL = '<authorizationEntry {kind}=">" read="bridges" write="bridges" admin="bridges"/>'


def broker(folder: Path, name: str, port: int, networks: str = "", entries: str = "") -> Path:
    path = folder / name / "conf" / "activemq.xml"
    path.parent.mkdir(parents=True)
    authorization = AUTHORIZATION.format(entries=entries) if entries else ""
    path.write_text(BROKER.format(name=name, port=port, networks=networks, authorization=authorization))
    return path


def lacking(folder: Path, entries: str, duplex: str = "true") -> list[str]:
    """What the warnings about the bridge say, without the name of the file."""
    north = broker(folder, "north", 61616, CONNECTOR.format(duplex=duplex))
    south = broker(folder, "south", 61617, "", entries)
    found = [each for each in told(call(north, south), "warning") if "networkConnector" in each]
    return [each.replace(str(south), "south") for each in found]


@pytest.mark.parametrize("entries", ["", ALL.format(kind="queue"), ALL.format(kind="topic")])
def test_a_user_with_all_permissions_is_no_finding(tmp_path: Path, entries: str) -> None:
    assert lacking(tmp_path, entries) == []


def test_each_permission_that_the_user_lacks_is_named(tmp_path: Path) -> None:
    found = lacking(tmp_path, '<authorizationEntry queue=">" read="bridges" write="others" admin="others"/>')
    names = ("send", "createAddress", "createDurableQueue", "deleteDurableQueue", "createNonDurableQueue")
    assert [each.partition(" on no")[0].split()[-1] for each in found] == list(names)
    assert found[0] == (
        "networkConnector 'to-south': user 'bridge' has the permission send on no address of south: its messages"
        " are refused"
    )


def test_without_duplex_it_sends_only(tmp_path: Path) -> None:
    entries = '<authorizationEntry queue=">" read="others" write="bridges" admin="others"/>'
    (found,) = lacking(tmp_path, entries, "false")
    assert "may not consume ActiveMQ.Advisory.#" in found and "hears of no consumer" in found


def test_the_permissions_at_a_broker_that_is_not_given_are_told(tmp_path: Path) -> None:
    north = broker(tmp_path, "north", 61616, CONNECTOR.format(duplex="true"))
    (line,) = [each for each in told(call(north), "info") if "networkConnector" in each]
    assert "user 'bridge' needs at the other broker send, consume, createAddress" in line
    assert line.endswith("and consume on ActiveMQ.Advisory.#")
