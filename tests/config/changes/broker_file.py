"""A broker.xml with comments, entities and odd layout, to be changed; the lines that a change takes out and puts in."""

from __future__ import annotations

import difflib
from pathlib import Path

from atalanta.config.changes.request import Change, Value
from atalanta.config.changes.texts import Texts

BROKER = """<?xml version="1.0" encoding="UTF-8"?>
<!-- the node of the shop -->
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>shop &amp; stock</name>
    <cluster-password>geheim</cluster-password>

    <connectors>
      <connector name="self">tcp://127.0.0.1:61616</connector> <!-- me -->
      <connector name="other">tcp://127.0.0.1:61617?tcpNoDelay=true&amp;tcpSendBufferSize=1024</connector>
    </connectors>
    <acceptors>
      <acceptor name='artemis'
                >tcp://127.0.0.1:61616?protocols=CORE,STOMP;connectionsAllowed=7</acceptor>
    </acceptors>
    <broadcast-groups>
      <broadcast-group name="announce">
        <group-address>231.7.7.7</group-address>
        <group-port>9876</group-port>
        <connector-ref>self</connector-ref>
      </broadcast-group>
    </broadcast-groups>
    <discovery-groups>
      <discovery-group name="found"><group-address>231.7.7.7</group-address><group-port>9</group-port></discovery-group>
    </discovery-groups>
    <cluster-connections>
      <cluster-connection name="cluster">
        <connector-ref>self</connector-ref>
        <!-- found by multicast -->
        <discovery-group-ref discovery-group-name="found"/>
      </cluster-connection>
    </cluster-connections>
    <bridges>
      <!-- to the other shop -->
      <bridge name="one">
        <queue-name>orders</queue-name> <!-- important -->
        <user>u</user><password>p</password>
        <static-connectors>
          <connector-ref>other</connector-ref>
        </static-connectors>
      </bridge>
    </bridges>
    <diverts/>
    <address-settings>
\t<address-setting match="#">
\t\t<max-delivery-attempts>10<!-- as in the old broker --></max-delivery-attempts>
\t</address-setting>
    </address-settings>
    <security-settings>
      <security-setting match="#"><permission type="send" roles="amq"/></security-setting>
    </security-settings>
  </core>
</configuration>
"""


def texts(folder: Path, text: str = BROKER, own: str | None = None) -> Texts:
    """The texts of a broker.xml in the folder."""
    path = folder / "broker.xml"
    path.write_bytes(text.encode())
    if own is not None:
        (folder / "atalanta.toml").write_text(own)
    return Texts.read(path)


def changed(
    folder: Path, action: str, kind: str, name: str, values: dict[str, Value] | None = None, text: str = BROKER
) -> list[str]:
    """The lines of broker.xml that a change takes out ("-") and puts in ("+")."""
    before = texts(folder, text)
    after = before.changed([Change(action, kind, name, values or {})])
    assert before.own == after.own
    return lines(before.main.decode(), after.main.decode())


def lines(before: str, after: str) -> list[str]:
    """The lines that differ, as a diff has them, without context."""
    found = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[0] + line[2:] for line in found if line[0] in "-+"]
