"""Attributes that name an element beside the broker: `plugins="#mine"`; and `<ref bean="mine"/>`."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.activemq.references import PLACED_MAX
from atalanta.config.problems import NOT_ALONE
from atalanta.config.users.users import read_security
from tests.config.activemq.classic_files import BEANS, CORE, findings, problems, read

PLUGIN = (
    "<a:simpleAuthenticationPlugin {}><a:users><a:authenticationUser username='bob' password='bob' groups='users'/>"
    "</a:users></a:simpleAuthenticationPlugin>"
)


def beside(folder: Path, broker: str, inside: str, elements: str) -> Path:
    """A file with attributes of the broker, elements in it and beside it; those of Classic have `a:`."""
    path = folder / "activemq.xml"
    folder.mkdir(parents=True, exist_ok=True)
    spaces = f'xmlns:a="{CORE}" xmlns:u="http://www.springframework.org/schema/util"'
    text = f'<beans xmlns="{BEANS}" {spaces}>\n<a:broker {broker}>\n{inside}\n</a:broker>\n{elements}</beans>'
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("broker", "inside", "elements"),
    [
        ("plugins='#mine'", "", PLUGIN.format("id='mine'")),
        ("plugins='#list'", "", f"<u:list id='list'>{PLUGIN.format('')}</u:list>"),
        ("plugins='#list'", "", f"<u:list id='list'><ref bean='mine'/></u:list>{PLUGIN.format('id=' + repr('mine'))}"),
        ("", "<a:plugins><ref bean='mine'/></a:plugins>", PLUGIN.format("id='mine'")),
        ("", "<a:plugins><ref local='mine'/></a:plugins>", PLUGIN.format("id='mine'")),
        ("", f"<a:plugins><list>{PLUGIN.format('')}</list></a:plugins>", ""),
    ],
)
def test_plugins_that_are_named_have_their_users(tmp_path: Path, broker: str, inside: str, elements: str) -> None:
    configuration = read(beside(tmp_path, broker, inside, elements))
    assert findings(configuration) == []
    security = read_security(configuration)
    assert security.enabled and list(security.users) == ["bob"]


def test_all_sections_can_be_named(tmp_path: Path) -> None:
    connector = "<a:transportConnector name='x' uri='ssl://0.0.0.0:${port}'/>"
    elements = (
        "<a:kahaDB id='store' directory='shared'/>"
        "<a:policyMap id='policy'><a:policyEntries><a:policyEntry queue='&gt;' memoryLimit='1mb'"
        " deadLetterStrategy='#dead'/></a:policyEntries></a:policyMap>"
        "<a:individualDeadLetterStrategy id='dead' queuePrefix='DEAD.'/>"
        "<a:systemUsage id='usage'><a:memoryUsage><a:memoryUsage limit='64mb'/></a:memoryUsage></a:systemUsage>"
        "<a:sslContext id='ssl' keyStore='/etc/key.p12' keyStorePassword='secret'/>"
        f"<u:list id='connectors'>{connector}</u:list>"
        "<u:list id='queues'><a:queue physicalName='orders'/></u:list>"
    )
    named = (
        "persistenceAdapter='#store' destinationPolicy='#policy' systemUsage='#usage' sslContext='#ssl'"
        " transportConnectors='#connectors' destinations='#queues'"
    )
    configuration = read(beside(tmp_path, named, "", elements), PORT="61617")
    assert [each for each in findings(configuration) if each.startswith("!")] == []
    broker = configuration.broker
    assert configuration.journal_folder == tmp_path / "shared" / "journal"
    assert broker.global_max_size_bytes == 64 << 20
    assert [each.name for each in broker.addresses][0] == "orders"
    (setting,) = [each for each in broker.address_settings if each.match == ">"]
    assert setting.values["max_size_bytes"] == 1 << 20 and setting.values["dead_letter_queue_prefix"] == "DEAD."
    (acceptor,) = configuration.acceptors
    assert acceptor.port == 61617 and acceptor.tls is not None and acceptor.tls.key_store_path == "/etc/key.p12"


@pytest.mark.parametrize(
    ("broker", "inside", "elements", "says"),
    [
        ("plugins='#absent'", "", "", "broker plugins: no element of this file has the id 'absent'"),
        ("", "<a:plugins><ref bean='absent'/></a:plugins>", "", "plugins: no element of this file has the id 'absent'"),
        (
            "plugins='#mine'", "", "<bean id='mine' class='org.apache.activemq.security.SimpleAuthenticationPlugin'/>",
            "bean org.apache.activemq.security.SimpleAuthenticationPlugin: Java classes cannot be loaded",
        ),
        (
            "", "<a:plugins><bean class='example.LdapAuthorizer'/></a:plugins>", "",
            "bean example.LdapAuthorizer: Java classes cannot be loaded",
        ),
        ("persistenceAdapter='#absent'", "", "", f"broker persistenceAdapter: {NOT_ALONE}"),
        ("plugins='#loop'", "", "<u:list id='loop'><ref bean='loop'/></u:list>", "'loop' refers to itself"),
        ("plugin='#mine'", "", PLUGIN.format("id='mine'"), "unknown element <plugin> in <broker>"),
    ],
)  # fmt: skip
def test_what_must_not_be_passed_over_is_an_error(
    tmp_path: Path, broker: str, inside: str, elements: str, says: str
) -> None:
    found = problems(beside(tmp_path, broker, inside, elements))
    assert any(says in each for each in found), found


def test_what_is_not_in_the_file_is_a_warning(tmp_path: Path) -> None:
    names = ("transportConnectors", "destinationPolicy", "systemUsage", "sslContext", "destinationInterceptors")
    path = beside(tmp_path, " ".join(f"{name}='#absent'" for name in names), "", "")
    told = findings(read(path))
    assert [each.partition(": the element")[0] for each in told] == [f"!2: broker {name}" for name in names]


def test_an_element_that_nothing_names_and_a_plugin_that_is_a_bean_are_warnings(tmp_path: Path) -> None:
    others = "<bean id='mine' class='example.Audit'/><a:policyMap id='unused'/><a:commandAgent/>"
    path = beside(tmp_path, "plugins='#mine'", "", others)
    assert sorted(findings(read(path))) == [
        "!5: bean example.Audit: Java classes cannot be loaded",
        "!5: commandAgent: nobody answers on the topic ActiveMQ.Agent: see `atalanta --help`",
        "!5: policyMap unused: not read: nothing in <broker> refers to it",
    ]


def test_elements_that_name_each_other_again_and_again_are_bounded(tmp_path: Path) -> None:
    lists = "<a:queue id='l9' physicalName='q'/>"
    for number in range(9):
        inside = f"<ref bean='l{number + 1}'/>" * 9
        lists += f"<u:list id='l{number}'>{inside}</u:list>"
    found = problems(beside(tmp_path, "destinations='#l0'", "", lists))
    assert found == [f"5: references put more than {PLACED_MAX} elements into the broker"]


@pytest.mark.parametrize("elements", ["", "<bean id='rights' class='org.apache.activemq.security.LDAPMap'/>"])
def test_permissions_that_are_named_and_not_there_are_an_error(tmp_path: Path, elements: str) -> None:
    """Without a word nobody would know why everybody is refused."""
    path = beside(tmp_path, "", "<a:plugins><a:authorizationPlugin map='#rights'/></a:plugins>", elements)
    assert problems(path) == [
        "3: map of <authorizationPlugin>: no element of Classic in this file has the id 'rights'"
        " (write it as <map> in it)"
    ]


def test_unknown_attributes_of_sections_are_errors(tmp_path: Path) -> None:
    path = beside(tmp_path, "", "<a:destinationPolicy strict='true'/>", "")
    assert problems(path) == ["3: unknown attribute 'strict' of <destinationPolicy>"]
