"""Everything in an activemq.xml is honoured, a finding with its line, or an error with a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.acceptors import SERVED_PROTOCOLS
from atalanta.config.configuration import Configuration
from atalanta.kernel.unseen_options import JMX, JVM, LOGS, STORE_LAYOUT
from tests.config.activemq.classic_files import classic_file, copied, findings, problems, read

# Those about protocols go when the protocol is served: `test_protocols_that_are_not_served_are_told_by_name`.
OF_PROTOCOLS = ("acceptor ", "virtualTopic ")
LARGEST_BODY = "a body from a STOMP client has at most 16777216 bytes, a larger one is refused"


def told(configuration: Configuration, folder: Path) -> list[str]:
    found = [each.replace(str(folder), "BASE") for each in findings(configuration)]
    shown = [each for each in found if not each.partition(": ")[2].startswith(OF_PROTOCOLS)]
    return sorted(shown, key=lambda each: int(each.lstrip("!").partition(":")[0]))


def test_the_files_of_placeholders_have_values(tmp_path: Path) -> None:
    path = copied(tmp_path, "default.xml")
    text = path.read_text().replace('brokerName="shop"', 'brokerName="${shop.name}"')
    text = text.replace("credentials.properties</value>", "first.properties, classpath:second.properties</value>")
    path.write_text(text)
    (path.parent / "first.properties").write_text("shop.name = one\n")
    (path.parent / "second.properties").write_text("shop.name = two\n")
    assert read(path).broker.name == "two"
    assert read(path, SHOP_NAME="three", shop_name="").broker.name == "three"
    (path.parent / "second.properties").write_text("shop.name = \\u00\n")
    configuration = read(path)
    assert configuration.broker.name == "one"
    assert any("classpath:second.properties: not read: " in each for each in findings(configuration))


def test_the_file_that_classic_comes_with(tmp_path: Path) -> None:
    configuration = read(copied(tmp_path, "default.xml"))
    assert told(configuration, tmp_path) == [
        "!5: property file file:${activemq.conf}/credentials.properties: not read: No such file or directory",
        f"8: bean io.fabric8.insight.log.log4j.Log4jLogQuery: {LOGS}",
        "9: ${activemq.data}: BASE/data, from the place of this file: ACTIVEMQ_DATA is not set",
        f"21: managementContext: {JMX}",
        "22: ${activemq.data}: BASE/data, from the place of this file: ACTIVEMQ_DATA is not set",
        f"22: kahaDB: {STORE_LAYOUT}",
        f"25: memoryUsage percentOfJvmHeap: {JVM}",
        "!26: storeUsage limit: a limit in bytes does not count: senders wait when the disk is full by 90 percent, or"
        " by percentLimit",
        "!27: tempUsage: one limit for the whole disk: senders wait when it is full by max-disk-usage (that of"
        " <storeUsage>, else 90 percent)",
        "32: transportConnector amqp: wireFormat.maxFrameSize: of AMQP or MQTT: a connector for these opens no port"
        " here, and is named",
        f"!33: transportConnector stomp: wireFormat.maxFrameSize: {LARGEST_BODY}",
        f"!35: transportConnector ws: wireFormat.maxFrameSize: {LARGEST_BODY}",
        f"37: shutdownHooks: {JVM}",
        "!41: import jetty.xml: no web console, and no HTTP or REST for clients: see `atalanta run --web`",
    ]


def test_users_and_permissions(tmp_path: Path) -> None:
    configuration = read(copied(tmp_path, "security.xml"), SHOP_PASSWORD="manager")
    assert told(configuration, tmp_path) == [
        "3: broker useJmx: there is no JMX",
        "!16: authorizationEntry >: a queue and a topic of one name are one address: a role has there what both"
        " entries give it; less than one of them says has users",
    ]


def test_destinations(tmp_path: Path) -> None:
    configuration = read(copied(tmp_path, "destinations.xml"))
    assert told(configuration, tmp_path) == [
        "!11: policyEntry >: max-size-bytes 2097152: 1048576 counts, from line 13: a queue and a topic of one name are"
        " one address",
        "!11: policyEntry >: address-full-policy PAGE: FAIL counts, from line 13: a queue and a topic of one name are"
        " one address",
        "15: individualDeadLetterStrategy useQueueForQueueMessages: so it is here",
        "!44: compositeTopic ALL.>: read, no effect yet: a divert has an address without wildcards",
        "49: redeliveryPlugin fallbackToDeadLetter: so it is here",
        "49: redeliveryPlugin sendToDlqIfMaxRetriesExceeded: so it is here",
        "!62: timeStampingBrokerPlugin: JMSTimestamp and the expiry of a message are counted by the clock of its"
        " sender, not by that of the broker",
    ]


def test_protocols_that_are_not_served_are_told_by_name(tmp_path: Path) -> None:
    configuration = read(copied(tmp_path, "default.xml"))
    lost = [each for each in findings(configuration) if each.startswith("!")]
    for line, name, protocols in (
        (31, "openwire", ["OPENWIRE"]),
        (32, "amqp", ["AMQP"]),
        (33, "stomp", ["STOMP"]),
        (34, "mqtt", ["MQTT"]),
        (35, "ws", ["STOMP", "MQTT", "AMQP"]),
    ):
        said = [each for each in lost if each.startswith(f"!{line}: acceptor {name}")]
        for protocol in protocols:
            served = protocol in SERVED_PROTOCOLS
            assert any(protocol in each for each in said) != served, (line, protocol, said)


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ("<plugin/>", "3: unknown element <plugin> in <broker> (did you mean 'plugins'?)"),
        (
            "<networkConnectors><networkConnector uri='static:(tcp://b)' duplx='true'/></networkConnectors>",
            "3: unknown attribute 'duplx' of <networkConnector> (did you mean 'duplex'?)",
        ),
        (
            "<networkConnectors><networkConnector uri='static:(tcp://b)' prefetchSize='0'/></networkConnectors>",
            "3: prefetchSize: 0 is less than 1",
        ),
        (
            "<networkConnectors><networkConnector uri='http://registry'/></networkConnectors>",
            "3: networkConnector NC: http: brokers are not discovered over HTTP: name them with static:(…)",
        ),
        (
            "<networkConnectors><networkConnector uri='ldap://directory'/></networkConnectors>",
            "3: networkConnector NC: ldap: brokers are not discovered in a directory: name them with static:(…)",
        ),
        (
            "<networkConnectors><networkConnector uri='static:(tcp://a:1'/></networkConnectors>",
            "3: networkConnector NC: '(tcp://a:1' has no closing ')'",
        ),
        (
            "<networkConnectors><networkConnector name='x' uri='static:(tcp://a)'/>"
            "\n<networkConnector name='x' uri='static:(tcp://b)'/></networkConnectors>",
            "4: networkConnector 'x' is given twice (give each a name)",
        ),
        (
            "<networkConnectors><networkConnector uri='static:(tcp://a)' password='ENC(x)'/></networkConnectors>",
            "3: password of <networkConnector> is encrypted (Jasypt), and the key is not in the file"
            " (write it as ${NAME} and set that environment variable)",
        ),
        (
            "<transportConnectors><transportConnector uri='stmop://0.0.0.0:1'/></transportConnectors>",
            "3: transportConnector stmop://0.0.0.0:1: 'stmop://0.0.0.0:1' has no known scheme (did you mean 'stomp'?)",
        ),
        (
            "<transportConnectors><transportConnector name='o' uri='tcp://h:1?maximumConection=1'/>"
            "</transportConnectors>",
            "3: transportConnector o: unknown option 'maximumConection' (did you mean 'maximumConnections'?)",
        ),
        (
            "<destinationPolicy><policyMap><policyEntries>\n<policyEntry queue='a' memoryLimit='1 tb'/>"
            "</policyEntries></policyMap></destinationPolicy>",
            "4: memoryLimit: '1 tb' is not a size such as 1048576, 64 mb or 10 gb",
        ),
        (
            "<destinationPolicy><policyMap><policyEntries><policyEntry queue='>.a'/>"
            "</policyEntries></policyMap></destinationPolicy>",
            "3: '>' can only stand at the end of a match: '>.a'",
        ),
        (
            "<plugins><jaasAuthenticationPlugin configuration='activemq'/></plugins>",
            "3: there is no login.config beside this file (copy it, and the files it names)",
        ),
        (
            "<plugins><authorizationPlugin><map><cachedLDAPAuthorizationMap/></map></authorizationPlugin></plugins>",
            "3: permissions of a directory (LDAP) are not read (write them as <authorizationEntry> elements)",
        ),
        (
            "<destinations><queue physicalName='${where}'/></destinations>",
            "3: '${where}' has no value in <queue> (set the environment variable WHERE, or write ${where:default})",
        ),
        (
            "<destinations><queue physicalName='#{a}'/></destinations>",
            "3: '#{a}' in <queue>: #{…} is not read (write ${NAME})",
        ),
        ("<sslContext><sslContext keyStore='classpath:b.ks'/></sslContext>", "3: keyStore: 'classpath:b.ks' is not a"),
    ],
)
def test_mistakes(tmp_path: Path, inside: str, says: str) -> None:
    found = problems(classic_file(tmp_path, inside))
    assert any(each.startswith(says) for each in found), found


def test_one_broker_a_file(tmp_path: Path) -> None:
    path = classic_file(tmp_path, "</broker>\n<broker xmlns='http://activemq.apache.org/schema/core'>")
    assert problems(path) == [
        "4: the file holds 2 brokers (<broker>), not one (lines 2, 4: start each from a file of its own)"
    ]


def test_beans_and_other_stores_are_told_and_nothing_is_loaded(tmp_path: Path) -> None:
    path = classic_file(
        tmp_path,
        "<persistenceAdapter><jdbcPersistenceAdapter/></persistenceAdapter>\n"
        "<plugins><bean id='mine' class='org.example.Plugin'/></plugins>\n"
        "<services><bean class='org.example.Service'/></services>",
    )
    lost = [each for each in findings(read(path)) if each.startswith("!")]
    assert lost == [
        "!3: jdbcPersistenceAdapter: messages are kept in this broker's journal; those of Classic's store are not read",
        "!4: bean org.example.Plugin: Java classes cannot be loaded",
        "!5: services: Java classes cannot be loaded",
    ]


@pytest.mark.parametrize("store", ["kahaDB", "mKahaDB"])
def test_options_of_the_lock(tmp_path: Path, store: str) -> None:
    inside = (
        f"<persistenceAdapter><{store} useLock='false' lockKeepAlivePeriod='1' databaseLockedWaitDelay='1'>"
        "\n<locker><shared-file-locker lockAcquireSleepInterval='5000' failIfLocked='{}'/></locker>"
        f"</{store}></persistenceAdapter>"
    )
    takes = "a slave takes over at once when its master ends; lease_ms in atalanta.toml counts for a lost host"
    for text, wait_ms in (("false", -1), ("true", 1)):
        configuration = read(classic_file(tmp_path, inside.format(text)))
        assert [each for each in findings(configuration) if f"{store}:" not in each] == [
            f"!3: {store} useLock: a store is always protected from a second broker",
            f"3: {store} lockKeepAlivePeriod: {takes}",
            f"3: {store} databaseLockedWaitDelay: {takes}",
            f"4: shared-file-locker lockAcquireSleepInterval: {takes}",
        ]
        assert configuration.journal.lock_acquisition_timeout_ms == wait_ms
    older = "<persistenceAdapter><kahaDB failIfDatabaseIsLocked='true' useLock='true'/></persistenceAdapter>"
    assert read(classic_file(tmp_path, older)).journal.lock_acquisition_timeout_ms == 1


def test_a_policy_of_temporary_destinations_is_not_that_of_all(tmp_path: Path) -> None:
    inside = (
        "<destinationPolicy><policyMap><policyEntries><policyEntry tempQueue='true' memoryLimit='1mb'/>"
        "</policyEntries></policyMap></destinationPolicy>"
    )
    configuration = read(classic_file(tmp_path, inside))
    assert findings(configuration) == ["!3: policyEntry tempQueue: temporary destinations have the settings of >"]
    (setting,) = configuration.broker.address_settings
    assert setting.values.get("max_size_bytes", -1) == -1


def test_an_authorization_entry_of_temporary_destinations_is_told(tmp_path: Path) -> None:
    inside = (
        "<plugins><authorizationPlugin><map><authorizationMap><authorizationEntries>"
        "<authorizationEntry tempQueue='>' read='a'/></authorizationEntries></authorizationMap></map>"
        "</authorizationPlugin></plugins>"
    )
    told = findings(read(classic_file(tmp_path, inside)))
    why = "Classic never asks it: write a <tempDestinationAuthorizationEntry>"
    assert f"!3: authorizationEntry tempQueue: {why}" in told
