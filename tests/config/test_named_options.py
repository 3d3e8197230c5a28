"""Options without effect are named with what the file misses, if a client can see that, and else not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.core_xml import read

SETTING = '<address-settings><address-setting match="#">{}</address-setting></address-settings>'


def named(folder: Path, core: str) -> list[str]:
    """The names of the options that are warnings."""
    return [each.name for each in read(folder, core).unsupported if each.lost]


def acceptor(parameters: str) -> str:
    return f'<acceptors><acceptor name="a">tcp://127.0.0.1:1?{parameters}</acceptor></acceptors>'


@pytest.mark.parametrize(
    ("core", "name"),
    [
        ("<jmx-management-enabled>true</jmx-management-enabled>", "jmx-management-enabled"),
        ("<resolve-protocols>false</resolve-protocols>", "resolve-protocols"),
        ("<backup>true</backup>", "backup"),
        ("<shared-store>true</shared-store>", "shared-store"),
        ("<system-property-prefix>x.</system-property-prefix>", "system-property-prefix"),
        ("<journal-lock-monitor-timeout>9</journal-lock-monitor-timeout>", "journal-lock-monitor-timeout"),
        ("<metrics><jvm-gc>true</jvm-gc></metrics>", "metrics"),
        ("<store><database-store><jdbc-driver-class-name>x</jdbc-driver-class-name></database-store></store>", "store"),
        ("<create-journal-dir>false</create-journal-dir>", "create-journal-dir"),
        ("<node-manager-lock-directory>/locks</node-manager-lock-directory>", "node-manager-lock-directory"),
        (
            "<global-max-size-percent-of-jvm-max-memory>70</global-max-size-percent-of-jvm-max-memory>",
            "global-max-size-percent-of-jvm-max-memory",
        ),
        (SETTING.format("<auto-create-jms-queues>false</auto-create-jms-queues>"), "auto-create-jms-queues"),
        (
            '<security-settings><security-setting-plugin class-name="x"/></security-settings>',
            "security-setting-plugin",
        ),
        (
            '<acceptors><acceptor name="a"><factory-class>com.shop.Mine</factory-class></acceptor></acceptors>',
            "acceptor a: com.shop.Mine",
        ),
        (acceptor("amqpCredits=1"), "acceptor a: amqpCredits"),
        (acceptor("needClientAuht=true"), "acceptor a: needClientAuht"),
        (acceptor("supportAdvisory=false"), "acceptor a: supportAdvisory"),
        (acceptor("useKeepAlive=false"), "acceptor a: useKeepAlive"),
        (acceptor("webSocketEncoderType=text"), "acceptor a: webSocketEncoderType"),
        (acceptor("webSocketMaxFramePayloadLength=100"), "acceptor a: webSocketMaxFramePayloadLength"),
        (
            '<connectors><connector name="c">tcp://h:1?localAddress=10.0.0.1;localPort=7</connector></connectors>',
            "connector c: localAddress, localPort",
        ),
        (
            '<broker-plugins><broker-plugin class-name="org.apache.activemq.artemis.core.server.plugin.impl.'
            'NotificationActiveMQServerPlugin"><property key="SEND_NOTHING_NOTIFICATIONS" value="true"/>'
            "</broker-plugin></broker-plugins>",
            "SEND_NOTHING_NOTIFICATIONS",
        ),
    ],
)
def test_what_a_client_can_see_is_named(tmp_path: Path, core: str, name: str) -> None:
    assert named(tmp_path, core) == [name]


@pytest.mark.parametrize(
    "core",
    [
        "<jmx-management-enabled>false</jmx-management-enabled><backup>false</backup>",
        "<store><file-store/></store>",
        "<create-journal-dir>true</create-journal-dir>",
        "<thread-pool-max-size>9</thread-pool-max-size><jmx-domain>x</jmx-domain>",
        SETTING.format("<auto-create-jms-queues>true</auto-create-jms-queues><page-max-cache-size>7</page-max-cache-size>"),
        acceptor("protocols=CORE;amqpCredits=1;maximumPacketSize=3"),
        acceptor("localAddress=10.0.0.1;useEpoll=true;supportAdvisory=true;socksEnabled=false;socksHost=x"),
    ],
)
def test_what_nobody_sees_is_not_named(tmp_path: Path, core: str) -> None:
    assert named(tmp_path, core) == []
