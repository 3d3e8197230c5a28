"""A file that says in a way that is not built that there are other brokers does not start, unless a person says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import NOT_ALONE
from tests.config.activemq.classic_files import BEANS, CORE, classic_file, findings, problems, read

MYSQL = "<bean id='db' class='org.apache.commons.dbcp2.BasicDataSource'><property name='url' value='{}'/></bean>"
DERBY = "<bean id='db' class='org.apache.derby.jdbc.EmbeddedDataSource'><property name='x' value='d'/></bean>"
JDBC = "<persistenceAdapter><jdbcPersistenceAdapter dataSource='#db'/></persistenceAdapter>"
LEASE = "<persistenceAdapter>\n<{0}><locker><lease-database-locker/></locker></{0}></persistenceAdapter>"


def with_beans(folder: Path, inside: str, beans: str) -> Path:
    """A file with these elements from line 3, and these beans beside the broker."""
    path = classic_file(folder, inside)
    text = f'<beans xmlns="{BEANS}">\n<broker xmlns="{CORE}">\n{inside}\n</broker>\n{beans}</beans>'
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("inside", "line", "name"),
    [
        ("<persistenceAdapter>\n<replicatedLevelDB directory='d' replicas='3'/></persistenceAdapter>", 4,
         "replicatedLevelDB"),
        ("<services>\n<masterConnector remoteURI='tcp://a:1'/></services>", 4, "masterConnector"),
        ("<services>\n<bean class='org.apache.activemq.broker.ft.MasterConnector'/></services>", 4, "bean"),
        (LEASE.format("kahaDB"), 4, "lease-database-locker"),
        (LEASE.format("mKahaDB"), 4, "lease-database-locker"),
        ("<persistenceAdapter><kahaDB>\n<locker>\n<database-locker/></locker></kahaDB></persistenceAdapter>", 5,
         "database-locker"),
        ("<persistenceAdapter><kahaDB>\n<locker><bean class='example.Lock'/></locker></kahaDB></persistenceAdapter>",
         4, "bean"),
        ("<persistenceAdapter>\n<kahaDB locker='#theirs'/></persistenceAdapter>", 4, "locker"),
        (JDBC, 3, "jdbcPersistenceAdapter dataSource"),
        ("<persistenceAdapter>\n<bean class='org.apache.activemq.store.jdbc.JDBCPersistenceAdapter'>"
         "<property name='dataSource' ref='db'/></bean></persistenceAdapter>", 4, "bean org.apache"),
        ("<persistenceAdapter>\n<bean class='org.apache.activemq.leveldb.replicated.ElectingLevelDBStore'/>"
         "</persistenceAdapter>", 4, "bean org.apache.activemq.leveldb.replicated"),
        ("<persistenceAdapter><mKahaDB><filteredPersistenceAdapters><filteredKahaDB><persistenceAdapter>\n"
         "<jdbcPersistenceAdapter dataSource='#db'/></persistenceAdapter></filteredKahaDB>"
         "</filteredPersistenceAdapters></mKahaDB></persistenceAdapter>", 4, "jdbcPersistenceAdapter dataSource"),
        ("<persistenceAdapter><journaledJDBC dataSource='#db'/></persistenceAdapter>", 3, "journaledJDBC dataSource"),
        ("<persistenceFactory>\n<journalPersistenceAdapterFactory dataSource='#db'/></persistenceFactory>", 4,
         "journalPersistenceAdapterFactory dataSource"),
        ("<networkConnectors>\n<ldapNetworkConnector uri='ldap://a'/></networkConnectors>", 4, "ldapNetworkConnector"),
        ("<networkConnectors>\n<multicastNetworkConnector/></networkConnectors>", 4, "multicastNetworkConnector"),
        ("<transportConnectors>\n<transportConnector uri='tcp://h:1' discoveryAgent='#x'/></transportConnectors>", 4,
         "transportConnector discoveryAgent"),
    ],
)  # fmt: skip
def test_an_element_that_names_others(tmp_path: Path, inside: str, line: int, name: str) -> None:
    path = with_beans(tmp_path, inside, MYSQL.format("jdbc:mysql://db/activemq"))
    (found,) = problems(path)
    assert found.startswith(f"{line}: {name}") and f": {NOT_ALONE}" in found
    assert f"`atalanta run --alone {path}`" in found
    assert f"`alone = true` as the first line of {path.with_name('atalanta.toml')}" in found
    # Both ways to say it: the broker starts, and today's warning is there.
    for alone in (True, False):
        if not alone:
            path.with_name("atalanta.toml").write_text("alone = true\n")
        told = findings(read_broker_xml(path, {}, alone=alone))
        assert any(each.startswith(f"!{line}: {name}") for each in told), told


@pytest.mark.parametrize(
    "attribute",
    [
        "waitForSlave='true'", "passiveSlave='true'", "shutdownOnMasterFailure='true'", "shutdownOnSlaveFailure='true'",
        "masterConnectorURI='tcp://a:1'", "networkConnectorURIs='static:(tcp://b:1)'",
    ],
)  # fmt: skip
def test_an_attribute_that_names_others(tmp_path: Path, attribute: str) -> None:
    (found,) = problems(classic_file(tmp_path, "", attribute))
    assert found.startswith(f"2: broker {attribute.partition('=')[0]}: {NOT_ALONE}")


@pytest.mark.parametrize(
    "attribute",
    ["waitForSlave='false'", "passiveSlave='false'", "shutdownOnMasterFailure='false'", "waitForSlaveTimeout='600000'"],
)
def test_the_value_of_classics_default_names_nobody(tmp_path: Path, attribute: str) -> None:
    configuration = read(classic_file(tmp_path, "", attribute))
    assert findings(configuration) == [
        f"!2: broker {attribute.partition('=')[0]}: removed from Classic: for a pair, see <ha-policy> in"
        " docs/guide/high-availability.md"
    ]


@pytest.mark.parametrize(
    "bean",
    [
        DERBY,
        MYSQL.format("jdbc:derby:derbydb;create=true"),
        MYSQL.format("jdbc:h2:file:data/h2"),
        MYSQL.format("jdbc:hsqldb:file:data/hsql"),
        MYSQL.format("${where:jdbc:h2:mem:x}"),
        "<bean id='db' class='org.example.Pool'><property name='dataSource' ref='inner'/></bean>"
        + DERBY.replace("'db'", "'inner'"),
    ],
)
def test_an_embedded_database_names_nobody(tmp_path: Path, bean: str) -> None:
    kept = "messages are kept in this broker's journal; those of Classic's store are not read"
    found = findings(read(with_beans(tmp_path, JDBC, bean)))
    assert f"!3: jdbcPersistenceAdapter: {kept}" in found
    locked = JDBC.replace("/></", "><locker><lease-database-locker/></locker></jdbcPersistenceAdapter></")
    assert findings(read(with_beans(tmp_path, locked, bean)))


@pytest.mark.parametrize(
    "bean",
    [
        MYSQL.format("jdbc:oracle:thin:@db:1521:AMQDB"),
        MYSQL.format("jdbc:derby://db:1527/activemq"),
        MYSQL.format("jdbc:h2:tcp://db/activemq"),
        MYSQL.format("jdbc:h2:file:data;AUTO_SERVER=TRUE"),
        MYSQL.format("${jdbc.url}"),
        "<bean id='db' class='org.postgresql.ds.PGPoolingDataSource'><property name='serverName' value='db'/></bean>",
        "",
    ],
)
def test_a_database_that_others_may_reach(tmp_path: Path, bean: str) -> None:
    (found,) = problems(with_beans(tmp_path, JDBC, bean))
    assert found.startswith(f"3: jdbcPersistenceAdapter dataSource: {NOT_ALONE}")


@pytest.mark.parametrize(
    "inside",
    [
        "<persistenceAdapter><jdbcPersistenceAdapter dataDirectory='data'/></persistenceAdapter>",
        "<persistenceAdapter><kahaDB directory='d' useLock='false'/></persistenceAdapter>",
        "<persistenceAdapter><levelDB directory='d'/></persistenceAdapter>",
        "<persistenceAdapter><kahaDB><locker><shared-file-locker/></locker></kahaDB></persistenceAdapter>",
        "<persistenceFactory><journalPersistenceAdapterFactory/></persistenceFactory>",
    ],
)
def test_other_stores_name_nobody(tmp_path: Path, inside: str) -> None:
    assert read(classic_file(tmp_path, inside)).broker.persistence_enabled


def test_a_store_that_classic_ignores_names_nobody(tmp_path: Path) -> None:
    inside = "<persistenceAdapter><replicatedLevelDB replicas='3'/></persistenceAdapter>"
    assert not read(classic_file(tmp_path, inside, "persistent='false'")).broker.persistence_enabled


def test_check_and_convert_have_the_same_error_and_the_same_option(tmp_path: Path) -> None:
    path = classic_file(tmp_path, "", "masterConnectorURI='tcp://a:1'")
    target = tmp_path / "broker.xml"
    for words in (["check", str(path)], ["convert", str(path), "-o", str(target)]):
        refused = CliRunner().invoke(application, words, env={"COLUMNS": "1000"})
        assert refused.exit_code != 0 and NOT_ALONE in refused.output, refused.output
        done = CliRunner().invoke(application, [*words, "--alone"], env={"COLUMNS": "1000"})
        assert done.exit_code == 0 and NOT_ALONE not in done.output, done.output
    path.with_name("atalanta.toml").write_text("alone = true\n")
    assert CliRunner().invoke(application, ["check", str(path)]).exit_code == 0
