"""The section `<bridges>`, the tables of atalanta.toml for it, and what `atalanta check` finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.app.node_config import bridge_settings
from atalanta.app.startup_error import StartupError
from atalanta.cli.instance.check import check_files
from atalanta.cluster.core_bridges.config import CoreBridgeConfig
from atalanta.cluster.native_config import OwnBridge
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.kernel.routing.divert_config import ADD_HEADERS, ANYCAST

CONNECTORS = """<connectors><connector name="c1">tcp://a:61616</connector><connector name="inside">vm://0</connector></connectors>"""
STATIC = "<static-connectors><connector-ref>c1</connector-ref></static-connectors>"
ORDERS = (
    '<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>'
    '<acceptors><acceptor name="own">tcp://127.0.0.1:61616</acceptor></acceptors>'
)


def write(folder: Path, bridges: str, own: str = "", more: str = ORDERS) -> Path:
    path = folder / "broker.xml"
    text = f"{CONNECTORS}<bridges>{bridges}</bridges>{more}"
    path.write_text(f"<configuration><core>{text}</core></configuration>")
    if own:
        (folder / "atalanta.toml").write_text(own)
    return path


def read(folder: Path, bridges: str, own: str = "") -> Configuration:
    return read_broker_xml(write(folder, bridges, own))


def test_a_bridge_with_everything(tmp_path: Path) -> None:
    text = f"""<bridge name="full">
      <queue-name>orders</queue-name><forwarding-address>inbox</forwarding-address><ha>true</ha>
      <filter string="price &gt; 3"/>
      <transformer><class-name>{ADD_HEADERS}</class-name><property key="k" value="v"/></transformer>
      <min-large-message-size>10K</min-large-message-size><check-period>1</check-period>
      <connection-ttl>2</connection-ttl><retry-interval>3</retry-interval>
      <retry-interval-multiplier>1.5</retry-interval-multiplier>
      <max-retry-interval>4</max-retry-interval>
      <initial-connect-attempts>5</initial-connect-attempts>
      <reconnect-attempts>6</reconnect-attempts>
      <use-duplicate-detection>false</use-duplicate-detection>
      <confirmation-window-size>7M</confirmation-window-size>
      <producer-window-size>-1</producer-window-size><user>u</user><password>p</password>
      <reconnect-attempts-same-node>8</reconnect-attempts-same-node>
      <routing-type>ANYCAST</routing-type><concurrency>2</concurrency>
      <pending-ack-timeout>9</pending-ack-timeout>
      {STATIC}<client-id>c</client-id>
    </bridge>"""
    assert read(tmp_path, text).bridges == [
        CoreBridgeConfig(
            "full", "orders", "inbox", True, 10_240, 1, 2, 3, 1.5, 4, 5, 6, 8, False, False,
            7 << 20, -1, "u", "p", ANYCAST, 2, 9, 30_000, "c", "price > 3", ADD_HEADERS,
            {"k": "v"}, ["c1"],
        )
    ]  # fmt: skip


def test_defaults_are_those_of_artemis(tmp_path: Path) -> None:
    text = f'<bridge name="b"><queue-name>q</queue-name>{STATIC}</bridge>'
    config = read(tmp_path, text).bridges[0]
    assert config == CoreBridgeConfig("b", "q", static_connectors=["c1"])
    assert (config.retry_interval_ms, config.reconnect_attempts_same_node) == (2_000, 10)
    assert config.user == "ACTIVEMQ.CLUSTER.ADMIN.USER"


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        (STATIC, "needs a <queue-name>"),
        ("<queue-name>q</queue-name>", "needs <static-connectors> or"),
        (
            "<queue-name>q</queue-name><static-connectors><connector-ref>c2</connector-ref></static-connectors>",
            "there is no connector 'c2'",
        ),
        (
            '<queue-name>q</queue-name><discovery-group-ref discovery-group-name="g"/>',
            "there is no discovery-group 'g'",
        ),
        (f'<queue-name>q</queue-name>{STATIC}<filter string="x ="/>', "filter"),
        (
            f"<queue-name>q</queue-name>{STATIC}<transformer-class-name>com.example.Mine</transformer-class-name>",
            "transformer 'com.example.Mine' is not known",
        ),
        (f"<queue-name>q</queue-name>{STATIC}<password>ENC(x)</password>", "not a masked password"),
        (f"<queue-name>q</queue-name>{STATIC}<concurrency>0</concurrency>", "concurrency"),
        (
            f"<queue-name>q</queue-name>{STATIC}"
            "<retry-interval-multiplier>0</retry-interval-multiplier>",
            "retry-interval-multiplier: 0 is not above 0",
        ),
        (f"<queue-name>q</queue-name>{STATIC}<quue/>", "unknown element <quue>"),
    ],
)
def test_what_cannot_work_is_a_problem_with_its_place(
    tmp_path: Path, inside: str, why: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f'<bridge name="b">{inside}</bridge>')
    assert why in str(caught.value)
    assert "broker.xml:1:" in str(caught.value)


def test_a_connector_within_a_process_leads_nowhere(tmp_path: Path) -> None:
    to = "<static-connectors><connector-ref>inside</connector-ref></static-connectors>"
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f'<bridge name="b"><queue-name>q</queue-name>{to}</bridge>')
    assert "there is no connector 'inside' (in-vm connectors are not supported here" in str(caught.value)


def test_a_python_function_takes_the_place_of_a_java_class(tmp_path: Path) -> None:
    (tmp_path / "my_bridges.py").write_text("def shout(message):\n    return None\n")
    text = (
        f'<bridge name="b"><queue-name>orders</queue-name>{STATIC}'
        "<transformer-class-name>com.example.Mine</transformer-class-name></bridge>"
    )
    own = '[bridges.b]\ntransformer = "my_bridges:shout"\naddress-prefix = "eu."\n'
    configuration = read(tmp_path, text, own)
    assert configuration.own.bridges == {"b": OwnBridge("eu.", "", "my_bridges:shout")}
    assert bridge_settings(configuration).transforms["b"].__name__ == "shout"


def test_a_function_that_cannot_be_had_keeps_the_node_from_starting(tmp_path: Path) -> None:
    text = f'<bridge name="b"><queue-name>orders</queue-name>{STATIC}</bridge>'
    configuration = read(tmp_path, text, '[bridges.b]\ntransformer = "absent_module:f"\n')
    with pytest.raises(StartupError, match="absent_module cannot be imported"):
        bridge_settings(configuration)


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ("[bridges.b]\ntransformer = 3\n", "atalanta.toml:2: transformer: 3 is not a string"),
        ('[bridges.b]\ntransformer = "os.system"\n', "is not module:function"),
        ('[bridges.b]\naddress-prefx = "x"\n', "did you mean 'address-prefix'?"),
        ("bridges = 1\n", "bridges is not a table"),
    ],
)
def test_mistakes_in_our_own_file_are_named(tmp_path: Path, own: str, why: str) -> None:
    text = f'<bridge name="b"><queue-name>orders</queue-name>{STATIC}</bridge>'
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, own)
    assert why in str(caught.value)


def said(path: Path) -> str:
    return "\n".join(f"{each.level} {each.line} {each.text}" for each in check_files([path]))


def test_check_names_what_will_not_do_what_was_meant(tmp_path: Path) -> None:
    local = '<connectors><connector name="c1">tcp://127.0.0.1:61616</connector></connectors>'
    text = f"""
    <bridge name="a"><queue-name>absent</queue-name>
      <forwarding-address>nowhere</forwarding-address>{STATIC}</bridge>
    <bridge name="b"><queue-name>orders</queue-name>
      <retry-interval>9000</retry-interval>{STATIC}</bridge>
    """
    path = tmp_path / "broker.xml"
    path.write_text(
        f"<configuration><core>{local}<bridges>{text}</bridges>{ORDERS}</core></configuration>"
    )
    (tmp_path / "atalanta.toml").write_text('[bridges.bb]\naddress-prefix = "x."\n')
    (tmp_path / "artemis-users.properties").write_text("")
    (tmp_path / "artemis-roles.properties").write_text("")
    found = said(path)
    assert "warning 2 bridge 'a': there is no queue 'absent'" in found
    assert f"warning 2 bridge 'a': {path} has no address 'nowhere'" in found
    assert "error 4 bridge 'b' leads back to its own queue 'orders'" in found
    assert "retry-interval 9000 is cut to max-retry-interval 2000" in found
    assert "[bridges.bb]: there is no bridge of that name" in found
    for line, name in ((2, "a"), (4, "b")):
        assert f"warning {line} bridge '{name}': it has the default cluster user and password" in found
    assert "give it a <user> and <password> of its target" in found
    assert f"error 4 bridge 'b': {path} refuses the default cluster user" in found


@pytest.mark.parametrize("cluster", [False, True])
def test_check_names_a_target_that_refuses_the_default_user(tmp_path: Path, cluster: bool) -> None:
    """A target in a cluster may have the default password still, so that the bridge works there."""
    target = tmp_path / "target" / "broker.xml"
    target.parent.mkdir()
    members = """<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
        </cluster-connection></cluster-connections>"""
    target.write_text(
        "<configuration><core><connectors><connector name='own'>tcp://h:1</connector></connectors>"
        f"<acceptors><acceptor name='x'>tcp://h:1</acceptor></acceptors>{members if cluster else ''}"
        "</core></configuration>"
    )
    source = write(tmp_path, f'<bridge name="b"><queue-name>orders</queue-name>{STATIC}</bridge>')
    source.write_text(source.read_text().replace("tcp://a:61616", "tcp://h:1"))
    found = check_files([source, target])
    refused = [each for each in found if "refuses the default cluster user" in each.text]
    assert [(each.level, each.file, "<user> and <password>" in each.hint) for each in refused] == (
        [] if cluster else [("error", str(source), True)]
    )
