"""Instances and calls for the tests of `atalanta check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from atalanta.cli.application import application

BROKER_XML = """<configuration><core>
<name>{name}</name>
<cluster-user>{user}</cluster-user><cluster-password>{password}</cluster-password>
<connectors>
<connector name="self">tcp://{host}:{port}{connector}</connector>
{connectors}
</connectors>
<acceptors><acceptor name="artemis">tcp://{listen}:{port}{acceptor}</acceptor></acceptors>
<broadcast-groups><broadcast-group name="bg">{local}<group-address>{group}</group-address>
<group-port>9876</group-port><connector-ref>self</connector-ref></broadcast-group></broadcast-groups>
<discovery-groups><discovery-group name="dg"><group-address>{listens}</group-address>
<group-port>9876</group-port></discovery-group></discovery-groups>
<cluster-connections><cluster-connection name="{cluster}"><connector-ref>self</connector-ref>
<message-load-balancing>{mode}</message-load-balancing>{members}
</cluster-connection></cluster-connections>
<address-settings><address-setting match="#"><redistribution-delay>{delay}</redistribution-delay>
</address-setting></address-settings>
<addresses><address name="orders"><{routing}/></address></addresses>
{more}
</core></configuration>
"""
DISCOVERY = '<discovery-group-ref discovery-group-name="dg"/>'
USUAL = {
    "user": "peer", "password": "secret", "host": "host-{name}", "port": "61616", "connector": "",
    "connectors": "", "listen": "0.0.0.0", "acceptor": "", "group": "231.7.7.7", "listens": "",
    "cluster": "c", "mode": "ON_DEMAND", "members": DISCOVERY, "delay": "0", "routing": "anycast",
    "more": "", "local": "",
}  # fmt: skip


def write(folder: Path, name: str, **values: str) -> Path:
    etc = folder / name / "etc"
    etc.mkdir(parents=True)
    merged = {**USUAL, "name": name, **values}
    if merged["local"]:
        merged["local"] = f"<local-bind-address>{merged['local']}</local-bind-address>"
    merged["host"] = merged["host"].format(name=name)
    merged["listens"] = merged["listens"] or merged["group"]
    (etc / "broker.xml").write_text(BROKER_XML.format(**merged))
    (etc / "artemis-users.properties").write_text("admin = x\n")
    (etc / "artemis-roles.properties").write_text("amq = admin\n")
    return etc / "broker.xml"


def call(*paths: Path, status: int = 0, strict: bool = False) -> list[dict[str, Any]]:
    words = ["check", "--json", *(["--strict"] if strict else []), *map(str, paths)]
    result = CliRunner().invoke(application, words)
    assert result.exit_code == status, result.output
    found: list[dict[str, Any]] = json.loads(result.output)["findings"]
    return found


def told(found: list[dict[str, Any]], level: str) -> list[str]:
    return [each["text"] for each in found if each["level"] == level]


def static(*names: str) -> str:
    inner = "".join(f"<connector-ref>{name}</connector-ref>" for name in names)
    return f"<static-connectors>{inner}</static-connectors>"
