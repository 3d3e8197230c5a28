"""An activemq.xml gives the same objects as a broker.xml."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.activemq.authorization import covers
from atalanta.config.configuration import Configuration
from atalanta.config.users.users import read_security
from atalanta.kernel.routing.divert_config import ANYCAST, MULTICAST
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.certificates import Authority
from tests.config.activemq.classic_files import (
    classic_file,
    copied,
    findings,
    problems,
    read,
    settings,
)

EVERYONE = "ActiveMQ.everyone"


@pytest.fixture
def destinations(tmp_path: Path) -> Configuration:
    return read(copied(tmp_path, "destinations.xml"))


def test_the_broker_and_its_folders(tmp_path: Path) -> None:
    configuration = read(copied(tmp_path, "default.xml"))
    assert configuration.broker.name == "shop"
    assert configuration.broker.wildcard.any_words == ">"
    assert not configuration.broker.security_enabled
    assert configuration.journal_folder == tmp_path / "data" / "kahadb" / "journal"
    assert configuration.paging_folder == tmp_path / "data" / "kahadb" / "paging"
    (acceptor,) = [each for each in configuration.acceptors if each.name == "openwire"]
    assert (acceptor.host, acceptor.port, acceptor.connections_allowed) == ("0.0.0.0", 61616, 1000)
    assert acceptor.serves("CORE") and acceptor.serves("OPENWIRE") and not acceptor.serves("STOMP")


def test_the_folders_of_the_start_script_come_from_the_environment(tmp_path: Path) -> None:
    configuration = read(copied(tmp_path, "default.xml"), ACTIVEMQ_DATA="/srv/mq")
    assert str(configuration.journal_folder) == "/srv/mq/kahadb/journal"
    assert not [each for each in configuration.unsupported if each.name.startswith("${")]


@pytest.mark.parametrize(("given", "segment"), [("1g", 64 << 20), ("32mb", 32 << 20), ("256kb", 256 << 10)])
def test_the_journal_has_files_that_are_filled_at_once(tmp_path: Path, given: str, segment: int) -> None:
    """A GiB of zeros (activemq-specjms.xml of the distribution) kept the first client waiting for ten seconds."""
    store = f"<persistenceAdapter><kahaDB journalMaxFileLength='{given}'/></persistenceAdapter>"
    configuration = read(classic_file(tmp_path, store))
    assert configuration.journal.file_size_bytes == segment
    named = [each for each in findings(configuration) if "journalMaxFileLength" in each]
    assert len(named) == (given == "1g")


def test_defaults_of_classic(tmp_path: Path) -> None:
    found = settings(read(classic_file(tmp_path, "")), "any")
    assert (found.dead_letter_address, found.expiry_address) == ("ActiveMQ.DLQ", "ActiveMQ.DLQ")
    assert not found.auto_delete_queues and not found.auto_delete_addresses
    assert found.auto_create_queues and found.max_size_bytes == -1 and found.address_full_policy == "PAGE"


def test_declared_destinations_and_limits(destinations: Configuration) -> None:
    broker = destinations.broker
    addresses = {each.name: each for each in broker.addresses}
    assert [queue.name for queue in addresses["orders"].queues] == ["orders"]
    assert addresses["news"].multicast and not addresses["news"].queues
    assert broker.global_max_size_bytes == 64 * 1024 * 1024
    assert broker.max_disk_usage == 80
    assert broker.address_queue_scan_period_ms == 10_000
    assert broker.message_expiry_scan_period_ms == -1


def test_policies(destinations: Configuration) -> None:
    every = settings(destinations, "orders")
    assert (every.max_size_bytes, every.address_full_policy) == (1024 * 1024, "FAIL")
    assert (every.auto_delete_queues, every.auto_delete_queues_delay_ms) == (True, 30_000)
    assert (every.dead_letter_address, every.dead_letter_queue_prefix) == ("ActiveMQ.DLQ.individual", "DLQ.")
    assert every.auto_create_dead_letter_resources and every.auto_create_expiry_resources
    assert (every.expiry_delay_ms, every.max_expiry_delay_ms) == (86_400_000, 86_400_000)
    prices = settings(destinations, "prices.gold")
    assert (prices.retroactive_message_count, prices.retroactive_on_request) == (5, True)


def test_the_nearest_policy_counts_alone(destinations: Configuration) -> None:
    big = settings(destinations, "big.orders")
    assert (big.dead_letter_address, big.expiry_address) == ("BAD", None)
    assert (big.default_consumers_before_dispatch, big.default_delay_before_dispatch_ms) == (2, 500)
    assert big.default_group_buckets == 64
    # What the policy of > sets, and this one does not.
    assert (big.max_size_bytes, big.address_full_policy, big.auto_delete_queues) == (-1, "PAGE", False)
    assert not big.auto_create_dead_letter_resources


def test_redelivery(destinations: Configuration) -> None:
    slow, every = settings(destinations, "slow"), settings(destinations, "orders")
    assert (slow.redelivery_delay_ms, slow.max_delivery_attempts) == (10_000, 5)
    assert slow.redelivery_delay_multiplier == 1.0
    assert (every.redelivery_delay_ms, every.redelivery_delay_multiplier) == (5000, 2.0)
    assert (every.max_redelivery_delay_ms, every.max_delivery_attempts) == (60_000, -1)
    assert slow.max_size_bytes == 1024 * 1024  # redelivery and policies are maps of their own


@pytest.mark.parametrize(
    ("policy", "more", "expected"),
    [
        ("lastImageSubscriptionRecoveryPolicy", "", (1, True, -1, -1)),
        ("fixedCountSubscriptionRecoveryPolicy", "", (100, True, -1, -1)),
        ('fixedSizedSubscriptionRecoveryPolicy maximumSize="9000"', "", (10_000, True, -1, 9_000)),
        ('timedSubscriptionRecoveryPolicy recoverDuration="7000"', "", (10_000, True, 7_000, -1)),
        ("lastImageSubscriptionRecoveryPolicy", 'alwaysRetroactive="true"', (1, False, -1, -1)),
    ],
)
def test_what_retroactive_consumers_get(
    tmp_path: Path, policy: str, more: str, expected: tuple[int, bool, int, int]
) -> None:
    found = read(
        classic_file(
            tmp_path,
            f'<destinationPolicy><policyMap><policyEntries><policyEntry topic="a" {more}>'
            f"<subscriptionRecoveryPolicy><{policy}/></subscriptionRecoveryPolicy>"
            "</policyEntry></policyEntries></policyMap></destinationPolicy>",
        )
    )
    kept = settings(found, "a")
    assert expected == (
        kept.retroactive_message_count, kept.retroactive_on_request, kept.retroactive_message_age_ms,
        kept.retroactive_message_bytes,
    )  # fmt: skip


def test_prefetches_and_the_wait_for_consumers_of_policies(tmp_path: Path) -> None:
    found = read(
        classic_file(
            tmp_path,
            "<destinationPolicy><policyMap><policyEntries>"
            '<policyEntry queue="&gt;" queuePrefetch="1" topicPrefetch="2"/>'
            '<policyEntry topic="t.&gt;" queuePrefetch="3" topicPrefetch="4" durableTopicPrefetch="5"/>'
            '<policyEntry queue="wait" consumersBeforeDispatchStarts="5" timeBeforeDispatchStarts="0"/>'
            "</policyEntries></policyMap></destinationPolicy>",
        )
    )
    every, topic, wait = (settings(found, name) for name in ("q", "t.a", "wait"))
    assert (every.openwire_queue_prefetch, every.openwire_topic_prefetch) == (1, 32_766)
    assert (topic.openwire_queue_prefetch, topic.openwire_topic_prefetch) == (1, 4)
    assert topic.openwire_durable_prefetch == 5
    assert wait.openwire_queue_prefetch == 1000  # the nearest policy counts alone
    assert (wait.default_consumers_before_dispatch, wait.default_delay_before_dispatch_ms) == (5, 1_000)


def test_composite_destinations_are_diverts(destinations: Configuration) -> None:
    found = [
        (each.address, each.forwarding_address, each.routing_type, each.exclusive, each.filter_text)
        for each in destinations.broker.diverts
    ]
    assert found == [
        ("IN", "A", ANYCAST, False, None),
        ("IN", "B", MULTICAST, False, None),
        ("IN", "C", ANYCAST, False, "x = 1"),
    ]


def test_what_openwire_acceptors_are_told(destinations: Configuration) -> None:
    acceptors = {each.name: each for each in destinations.acceptors}
    params = acceptors["openwire"].params
    assert params["virtualTopicConsumerWildcards"] == "Readers.*.>;2;selectorAware=true"
    assert params["supportAdvisory"] == "false"
    assert (params["updateClusterClients"], params["rebalanceClusterClients"]) == ("true", "true")
    assert params["updateClusterFilter"] == "north.*,south"
    assert acceptors["all"].protocols == ("CORE", "OPENWIRE", "STOMP")


def test_tls(tmp_path: Path) -> None:
    inside = (
        '<sslContext><sslContext keyStore="file:${activemq.conf}/broker.p12" keyStorePassword="secret"'
        ' keyStoreType="PKCS12" trustStore="file:///etc/trust.p12" trustStorePassword="s"/></sslContext>\n'
        '<transportConnectors><transportConnector name="ssl"'
        ' uri="nio+ssl://0.0.0.0:61617?needClientAuth=true&amp;transport.enabledProtocols=TLSv1.3"/>'
        "</transportConnectors>"
    )
    (acceptor,) = read(classic_file(tmp_path, inside)).acceptors
    tls = acceptor.tls
    assert tls is not None and tls.need_client_auth and tls.enabled_protocols == "TLSv1.3"
    assert (tls.key_store_path, tls.key_store_password) == (str(tmp_path / "conf" / "broker.p12"), "secret")
    assert (tls.trust_store_path, tls.key_store_type) == ("/etc/trust.p12", "PKCS12")


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("", ("ActiveMQ.DLQ", "ActiveMQ.DLQ", False, -1)),  # Classic's own
        ("<sharedDeadLetterStrategy/>", ("ActiveMQ.DLQ", "ActiveMQ.DLQ", False, -1)),
        ('<sharedDeadLetterStrategy processNonPersistent="true"/>', ("ActiveMQ.DLQ", "ActiveMQ.DLQ", True, -1)),
        ('<sharedDeadLetterStrategy expiration="1500"/>', ("ActiveMQ.DLQ", "ActiveMQ.DLQ", False, 1_500)),
        (
            '<individualDeadLetterStrategy processExpired="false" expiration="9"/>',
            ("ActiveMQ.DLQ.individual", None, False, 9),
        ),
    ],
)
def test_dead_letter_strategies(tmp_path: Path, strategy: str, expected: tuple[str, str | None, bool, int]) -> None:
    inner = f"<deadLetterStrategy>{strategy}</deadLetterStrategy>" if strategy else ""
    found = settings(
        read(
            classic_file(
                tmp_path,
                f'<destinationPolicy><policyMap><policyEntries><policyEntry queue="&gt;">{inner}'
                "</policyEntry></policyEntries></policyMap></destinationPolicy>",
            )
        ),
        "a",
    )
    assert expected == (
        found.dead_letter_address, found.expiry_address, found.dead_letter_non_durable, found.dead_letter_expiry_ms
    )  # fmt: skip


def test_dead_letters_can_be_dropped(tmp_path: Path) -> None:
    found = settings(read(classic_file(tmp_path, "<plugins><discardingDLQBrokerPlugin/></plugins>")), "any")
    assert (found.dead_letter_address, found.expiry_address) == (None, None)


# -- users and permissions ----------------------------------------------------------------------------


@pytest.fixture
def secured(tmp_path: Path) -> Configuration:
    return read(copied(tmp_path, "security.xml"), SHOP_PASSWORD="manager")


def test_users_of_the_file(secured: Configuration) -> None:
    security = read_security(secured)
    assert security.enabled
    assert {name: user.roles for name, user in security.users.items()} == {
        "system": ("users", "admins", EVERYONE),
        "clerk": ("users", EVERYONE),
        "nobody": (EVERYONE,),
    }
    assert security.users["system"].password.verify("manager")
    assert security.chain is not None and security.chain.guest is not None
    assert (security.chain.guest.user, security.chain.guest.strict) == ("anonymous", True)


def test_entries_of_wider_patterns_add_up(secured: Configuration) -> None:
    rules = {rule.match: rule.permissions for rule in secured.broker.security_rules}
    assert rules["USERS.>"]["send"] == ("users", "admins")
    assert rules["USERS.>"]["createDurableQueue"] == ("users", "admins")
    # A subscription of a topic is a queue here, and only its reader makes it.
    assert rules["PRICES.*"]["createNonDurableQueue"] == ("users", "admins")
    assert rules["PRICES.*"]["createAddress"] == ("admins",)
    # users may write to topics, but not to queues: not to both.
    assert rules[">"]["send"] == ("admins",)
    assert rules[">"]["manage"] == ("admins",)
    assert EVERYONE in rules["ActiveMQ.Advisory.>"]["consume"]
    assert "anonymous" in rules["ActiveMQ.Advisory.>"]["consume"]
    assert EVERYONE in rules["ActiveMQ.Temporary.>"]["createNonDurableQueue"]


def test_without_authorization_who_is_logged_in_may_do_everything(tmp_path: Path) -> None:
    inside = (
        "<plugins><simpleAuthenticationPlugin><users>"
        "<authenticationUser username='u' password='p' groups=''/></users></simpleAuthenticationPlugin></plugins>"
    )
    (rule,) = read(classic_file(tmp_path, inside)).broker.security_rules
    assert rule.match == ">" and rule.permissions["send"] == (EVERYONE,)


def test_the_statistics_plugin_answers_requests(tmp_path: Path) -> None:
    inside = "<plugins><statisticsBrokerPlugin/></plugins>"
    assert read(classic_file(tmp_path, inside)).broker.statistics_requests
    assert not read(classic_file(tmp_path, "")).broker.statistics_requests


def test_users_of_files_beside(tmp_path: Path) -> None:
    path = classic_file(tmp_path, "<plugins><jaasAuthenticationPlugin configuration='shop'/></plugins>")
    (path.parent / "login.config").write_text(
        "shop {\n org.apache.activemq.jaas.PropertiesLoginModule required\n"
        '  org.apache.activemq.jaas.properties.user="users.properties"\n'
        '  org.apache.activemq.jaas.properties.group="groups.properties";\n};'
    )
    (path.parent / "users.properties").write_text("admin=secret\nguest=guest\n")
    (path.parent / "groups.properties").write_text("admins=admin\n")
    security = read_security(read(path))
    assert {name: user.roles for name, user in security.users.items()} == {
        "admin": (EVERYONE, "admins"),
        "guest": (EVERYONE,),
    }


@pytest.mark.parametrize(
    ("plugin", "main", "secure"),
    [
        ("jaasAuthenticationPlugin", "activemq-domain", ""),
        ("jaasCertificateAuthenticationPlugin", "activemq-domain", ""),
        ("jaasDualAuthenticationPlugin", "activemq-domain", "activemq-ssl-domain"),
        ("jaasDualAuthenticationPlugin configuration='a' sslConfiguration='b'", "a", "b"),
    ],
)
def test_the_entries_of_jaas_plugins_are_those_of_classic(tmp_path: Path, plugin: str, main: str, secure: str) -> None:
    doors = '<transportConnectors><transportConnector name="s" uri="ssl://127.0.0.1:1"/></transportConnectors>'
    stores = f'<sslContext><sslContext keyStore="{Authority().key_pem(tmp_path)}"/></sslContext>'
    path = classic_file(tmp_path, f"<plugins><{plugin}/></plugins>{stores}{doors}")
    (path.parent / "login.config").write_text("x { };")
    configuration = read(path)
    assert configuration.logins is not None and configuration.logins.domain == main
    assert [each.security_domain for each in configuration.acceptors] == [secure]


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        (">", "A.B", True),
        ("A.>", "A.B.>", True),
        ("A.>", "A", True),
        ("A.*", "A.B", True),
        ("A.*", "A.>", False),
        ("*.>", "A.>", True),
        ("A.B", "A.*", False),
        ("A.>", ">", False),
    ],
)
def test_which_pattern_covers_which(wide: str, narrow: str, covered: bool) -> None:
    assert covers(wide, narrow) is covered


def test_a_discovery_uri_is_a_parameter_of_the_acceptor(tmp_path: Path) -> None:
    connector = '<transportConnector name="o" uri="tcp://{}:1" discoveryUri="{}"/>'
    text = f"<transportConnectors>{connector.format('h', 'multicast://default?group=shop')}</transportConnectors>"
    configuration = read(classic_file(tmp_path, text))
    assert configuration.acceptors[0].options(OpenWireAcceptor).discovery_uri == "multicast://default?group=shop"
    assert not [each for each in findings(configuration) if "discoveryUri" in each]
    text = f"<transportConnectors>{connector.format('0.0.0.0', 'zeroconf:x')}</transportConnectors>"
    assert "brokers are discovered by UDP multicast only" in str(problems(classic_file(tmp_path, text)))
    text = f"<transportConnectors>{connector.format('0.0.0.0', 'multicast://default')}</transportConnectors>"
    assert "write publishedHost for another one" in str(read(classic_file(tmp_path, text)).warnings)


@pytest.mark.parametrize(
    ("attributes", "schedules"), [("", False), ('schedulerSupport="false"', False), ('schedulerSupport="true"', True)]
)
def test_messages_are_scheduled_only_with_scheduler_support(tmp_path: Path, attributes: str, schedules: bool) -> None:
    inside = """<transportConnectors>
      <transportConnector name="openwire" uri="tcp://0.0.0.0:61616"/>
      <transportConnector name="stomp" uri="stomp://0.0.0.0:61613"/>
    </transportConnectors>"""
    configuration = read(classic_file(tmp_path, inside, attributes))
    assert {each.name: each.scheduler_support for each in configuration.acceptors} == {
        "openwire": schedules, "stomp": schedules,
    }  # fmt: skip
    assert not any("schedulerSupport" in each for each in findings(configuration))


def test_a_redelivery_without_end_keeps_the_largest_number_of_attempts(tmp_path: Path) -> None:
    inside = """<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><defaultEntry>
      <redeliveryPolicy maximumRedeliveries="2147483647"/>
    </defaultEntry></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"""
    configuration = read(classic_file(tmp_path, inside))
    [found] = [each for each in configuration.broker.address_settings if "max_delivery_attempts" in each.values]
    assert found.values["max_delivery_attempts"] == 2**31 - 1
