"""The manager of a replication: Artemis' classes, our kinds, and which of the two is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.ha.manager_config import (
    EtcdManagerConfig,
    FileManagerConfig,
    ManagerConfig,
    QuorumManagerConfig,
    ZooKeeperManagerConfig,
)

FILE = """<configuration><core>
<ha-policy><{form}><{role}>
{inside}
</{role}></{form}></ha-policy>
{cluster}
</core></configuration>
"""
PACKAGE = "org.apache.activemq.artemis"


CLUSTER = """<connectors><connector name="own">tcp://a:1</connector><connector name="other">tcp://b:1</connector>
</connectors><acceptors><acceptor name="a">tcp://a:1</acceptor></acceptors>
<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref><static-connectors>
<connector-ref>other</connector-ref></static-connectors></cluster-connection></cluster-connections>"""


def read(
    folder: Path, inside: str, own: str = "", role: str = "primary", form: str = "replication"
) -> Configuration:
    path = folder / "broker.xml"
    path.write_text(FILE.format(inside=inside, role=role, form=form, cluster=CLUSTER))
    if own:
        (folder / "atalanta.toml").write_text(own)
    return read_broker_xml(path, {})


def manager(name: str | None, **properties: str) -> str:
    """Returns the element with that class, on one line."""
    found = "".join(
        f'<property key="{key.replace("_", "-")}" value="{value}"/>' for key, value in properties.items()
    )
    named = f"<class-name>{name}</class-name>" if name else ""
    return f"<manager>{named}<properties>{found}</properties></manager>"


ZOOKEEPER = ZooKeeperManagerConfig("a:2181,b:2181", "brokers", 5000, 33, 8000, -1, 1000)
ZOOKEEPER_PROPERTIES = {
    "connect_string": "a:2181,b:2181", "namespace": "brokers", "session_ms": "5000", "retries": "-1"
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        None,
        f"{PACKAGE}.lockmanager.zookeeper.CuratorDistributedLockManager",
        f"{PACKAGE}.quorum.zookeeper.CuratorDistributedPrimitiveManager",
    ],
)
def test_artemis_manager_on_zookeeper(tmp_path: Path, name: str | None) -> None:
    configuration = read(tmp_path, manager(name, **ZOOKEEPER_PROPERTIES))
    assert configuration.ha.manager == ZOOKEEPER
    assert configuration.warnings == [] or all("manager" not in each for each in configuration.warnings)


def test_artemis_manager_in_a_folder(tmp_path: Path) -> None:
    name = f"{PACKAGE}.lockmanager.file.FileBasedLockManager"
    configuration = read(tmp_path, manager(name, locks_folder="/srv/locks"))
    assert configuration.ha.manager == FileManagerConfig("/srv/locks")


def test_it_is_read_below_master_too_and_that_is_said(tmp_path: Path) -> None:
    configuration = read(tmp_path, manager(None, **ZOOKEEPER_PROPERTIES), role="master")
    assert configuration.ha.manager == ZOOKEEPER
    assert any("broker.xml:3: manager: is taken here; Artemis ignores" in each for each in configuration.warnings)


def test_properties_without_effect_are_listed(tmp_path: Path) -> None:
    configuration = read(tmp_path, manager(None, **ZOOKEEPER_PROPERTIES))
    assert [(each.name, each.line) for each in configuration.unsupported] == [("session-ms", 3), ("retries", 3)]


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        (manager("com.shop.Mine"), "com.shop.Mine is a Java class, which cannot be loaded (CuratorDistributedLock"),
        (manager(None), "the manager has no property connect-string (host:port"),
        (manager(None, connect_string="a", sesion_ms="1"), "unknown property 'sesion-ms' of the manager (did you mean"),
        (manager(None, connect_string="a", session_ms="0"), "session-ms: 0 is less than 1"),
        (manager(None, connect_string="a", retries="some"), "retries: 'some' is not a number"),
        (manager(f"{PACKAGE}.lockmanager.file.FileBasedLockManager", folder="x"), "unknown property 'folder'"),
        ("<manager><class>x</class></manager>", "unknown element <class> in <manager>"),
    ],
)  # fmt: skip
def test_mistakes_have_line_and_remedy(tmp_path: Path, inside: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, inside)
    assert f"broker.xml:3: {says}" in str(error.value)


def test_a_shared_store_has_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown element <manager> in <primary>"):
        read(tmp_path, manager(None, connect_string="a"), form="shared-store")


# -- [ha.manager] -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ('kind = "file"\nlocks-folder = "/srv/x"', FileManagerConfig("/srv/x")),
        ('kind = "etcd"\nendpoints = "http://a:2379"\nnamespace = "n"', EtcdManagerConfig("http://a:2379", "n")),
        ('kind = "quorum"\nvoters = "a:7,b:7,c:7"', QuorumManagerConfig("a:7,b:7,c:7")),
        (
            'kind = "zookeeper"\nconnect-string = "a:2181,b:2181"\nnamespace = "brokers"\nsession-ms = 5000\n'
            "retries = -1",
            ZOOKEEPER,
        ),
    ],
)
def test_our_kinds(tmp_path: Path, own: str, expected: ManagerConfig) -> None:
    configuration = read(tmp_path, "", f"[ha.manager]\n{own}\n")
    assert configuration.ha.manager == expected
    assert [each for each in configuration.unsupported if "manager" in each.name] == []


def test_our_file_is_taken_instead_of_a_java_class(tmp_path: Path) -> None:
    own = '[ha.manager]\nkind = "quorum"\nvoters = "a:7"\n'
    assert read(tmp_path, manager("com.shop.Mine"), own).ha.manager == QuorumManagerConfig("a:7")


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ("[ha]\nmanager = 5", "2: [ha.manager] has no kind (write [ha.manager] and kind = one of file, etcd, zook"),
        ("[ha.manager]\nvoters = 'a'", "1: [ha.manager] has no kind"),
        ("[ha.manager]\nkind = 'consul'", "2: kind: 'consul' is none of file, etcd, zookeeper, quorum"),
        ("[ha.manager]\nkind = ['file']", "2: kind: ['file'] is none of file"),
        ("[ha.manager]\nkind = 'quorum'", "2: the manager has no voters (host:port of all voters"),
        ("[ha.manager]\nkind = 'quorum'\nvoters = ['a']", "3: voters: ['a'] is not of type str"),
        ("[ha.manager]\nkind = 'etcd'\nendpoint = 'a'\nendpoints = 'b'", "3: unknown key 'endpoint' of the manager"),
    ],
)  # fmt: skip
def test_mistakes_in_our_file(tmp_path: Path, own: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, "", own)
    assert f"atalanta.toml:{says}" in str(error.value)


@pytest.mark.parametrize(
    ("inside", "role", "form", "says"),
    [
        ("", "primary", "replication", "asynchronous: a primary serves, it cannot be asynchronous (remove it, or make"),
        ("", "backup", "shared-store", "asynchronous: this node has no <replication>"),
        (
            "<allow-failback>true</allow-failback>", "backup", "replication",
            "asynchronous: allow-failback has no place in an asynchronous member: an operator",
        ),
    ],
)  # fmt: skip
def test_an_asynchronous_member_serves_by_order_only(
    tmp_path: Path, inside: str, role: str, form: str, says: str
) -> None:
    own = "[ha]\nasynchronous = {}\n[ha.manager]\nkind = 'file'\nlocks-folder = 'x'\n"
    assert read(tmp_path, "", own.format("true"), "backup").ha.asynchronous
    with pytest.raises(ConfigError) as error:
        read(tmp_path, inside, own.format("true"), role, form)
    assert f"atalanta.toml:2: {says}" in str(error.value)
    assert not read(tmp_path, inside, own.format("false"), role, form).ha.asynchronous


def test_a_node_alone_needs_none(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("<configuration><core/></configuration>")
    (tmp_path / "atalanta.toml").write_text('[ha]\nlease_ms = 500\n[ha.manager]\nkind = "file"\nlocks-folder = "x"\n')
    said = {each.name: each.why for each in read_broker_xml(path, {}).unsupported}
    assert said == {
        "[ha] lease_ms": "no effect (this node has no ha-policy that needs it)",
        "[ha] manager": "no effect (only the nodes of a replication need one)",
    }
