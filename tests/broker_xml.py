"""The broker.xml of tests with processes: one template, and the elements that several of them want in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

TEMPLATE = """<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{name}</name>
    <security-enabled>{security}</security-enabled>
    <journal-directory>{data}/journal</journal-directory>
    <paging-directory>{data}/paging</paging-directory>
    <large-messages-directory>{data}/largemessages</large-messages-directory>
    <acceptors>
      <acceptor name="artemis">tcp://127.0.0.1:{port}{options}</acceptor>
    </acceptors>
    {more}
  </core>
</configuration>
"""
CLUSTER = """<connectors>{connectors}</connectors>
    {login}
    {groups}
    <cluster-connections>
      <cluster-connection name="cluster">
        <connector-ref>here</connector-ref>
        {inside}
        {found}
      </cluster-connection>
    </cluster-connections>
    """
LOGIN = "<cluster-user>cluster</cluster-user><cluster-password>secret</cluster-password>"
GROUPS = """<broadcast-groups><broadcast-group name="b">{channel}
      <broadcast-period>200</broadcast-period><connector-ref>here</connector-ref></broadcast-group></broadcast-groups>
    <discovery-groups><discovery-group name="d">{channel}
      <initial-wait-timeout>1500</initial-wait-timeout></discovery-group></discovery-groups>"""
DISCOVERY = '<discovery-group-ref discovery-group-name="d"/>'
RETRIES = "<retry-interval>100</retry-interval>"
# What those need who send and receive.
USE = "send consume browse createAddress createDurableQueue createNonDurableQueue".split()
SMALL_SEGMENTS = """<journal-file-size>256K</journal-file-size>
    <journal-compact-min-files>3</journal-compact-min-files>
    """
ORDERS = '<addresses><address name="orders"><anycast><queue name="orders"/></anycast></address></addresses>\n'
REDISTRIBUTED = (
    '<address-settings><address-setting match="#"><redistribution-delay>0</redistribution-delay></address-setting>'
    "</address-settings>\n"
)
PERMISSIONS = (
    "send consume browse manage createAddress deleteAddress createDurableQueue deleteDurableQueue"
    " createNonDurableQueue deleteNonDurableQueue"
).split()


def write_broker_xml(
    folder: Path,
    port: int,
    name: str = "test",
    more: str = "",
    *,
    data: str | Path = "data",
    options: str = "",
    security: bool = False,
    own: str = "",
) -> Path:
    """`folder`/etc/broker.xml with one acceptor, whose URL ends with `options`; `more` goes into <core> as it is.

    `data` is the folder of its files, `own` the text of an atalanta.toml beside it.
    """
    path = folder / "etc" / "broker.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"name": name, "port": port, "more": more, "data": data, "options": options}
    path.write_text(TEMPLATE.format(**values, security=str(security).lower()), encoding="utf-8")
    if own:
        path.with_name("atalanta.toml").write_text(own)
    return path


def cluster(
    port: int,
    others: Sequence[int],
    inside: str = "",
    channel: str = "",
    options: str = "",
    login: str = LOGIN,
    announced: str = "",
) -> str:
    """Elements of <core>: the connector `here` and one named `to<port>` for each other, whose URLs end with `options`;
    a cluster connection with the elements `inside`. With a `channel` it finds the others by a group of this channel.
    The node is `announced` at another host:port than its own if that is given.
    """
    named = {} if channel else {f"to{each}": f"127.0.0.1:{each}" for each in others}
    references = "".join(f"<connector-ref>{name}</connector-ref>" for name in named)
    return CLUSTER.format(
        connectors="".join(
            f'<connector name="{name}">tcp://{place}{options}</connector>'
            for name, place in {"here": announced or f"127.0.0.1:{port}", **named}.items()
        ),
        login=login,
        groups=GROUPS.format(channel=channel) if channel else "",
        inside=inside,
        found=DISCOVERY if channel else f"<static-connectors>{references}</static-connectors>",
    )


def permissions(roles: str, names: Sequence[str] = PERMISSIONS, operators: str = "") -> str:
    """The security setting that gives roles these permissions; `manage` to `operators` only if there are some."""
    by_name = dict.fromkeys(names, roles) | ({"manage": operators} if operators else {})
    given = "".join(f'<permission type="{name}" roles="{each}"/>' for name, each in by_name.items())
    return f'<security-settings><security-setting match="#">{given}</security-setting></security-settings>'


def write_users(broker_xml: Path, passwords: dict[str, str], roles: dict[str, str]) -> None:
    """The users beside a broker.xml, and those of each role, separated by commas."""
    for kind, table in (("users", passwords), ("roles", roles)):
        text = "".join(f"{name} = {value}\n" for name, value in table.items())
        broker_xml.with_name(f"artemis-{kind}.properties").write_text(text)
