"""A file of version 1 that `atalanta convert` has written is read without a word, and means the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.xml.convert import Converted, convert_file
from atalanta.kernel.settings.effective_settings import all_security_rules, settings_repository
from tests.config.version_1.files import version_1_file


def converted(folder: Path, core: str, acceptor: str = "tcp://127.0.0.1:61616") -> tuple[Configuration, Converted]:
    path = folder / "old.xml"
    path.write_text(version_1_file(core, acceptor=acceptor))
    result = convert_file(path, {})
    written = folder / "broker.xml"
    written.write_text(result.text)
    return read_broker_xml(written), result


def settings(*matches: tuple[str, str]) -> str:
    inside = "".join(f'<address-setting match="{match}">{text}</address-setting>' for match, text in matches)
    return f"<address-settings>{inside}</address-settings>"


def attempts(count: int) -> str:
    return f"<max-delivery-attempts>{count}</max-delivery-attempts>"


@pytest.mark.parametrize("acceptor", ["tcp://127.0.0.1:61616", "tcp://127.0.0.1:61616?useEpoll=false"])
def test_queues_topics_and_acceptors(tmp_path: Path, acceptor: str) -> None:
    configuration, result = converted(tmp_path, "", acceptor)
    assert {each.name: (each.anycast, each.multicast) for each in configuration.broker.addresses} == {
        "orders": (True, False), "eu.invoices": (True, False), "news": (False, True),
    }  # fmt: skip
    assert "anycastPrefix=jms.queue.;multicastPrefix=jms.topic." in result.text
    assert [each for each in configuration.warnings if "version 1" in each] == [] == result.left_out


def test_an_acceptor_in_the_old_form(tmp_path: Path) -> None:
    path = tmp_path / "old.xml"
    old = version_1_file("").replace("tcp://127.0.0.1:61616", '<param key="port" value="61616"/>')
    path.write_text(old)
    path.write_text(convert_file(path, {}).text)
    assert [each for each in read_broker_xml(path).warnings if "version 1" in each] == []


def test_one_match_where_queues_and_topics_are_treated_alike(tmp_path: Path) -> None:
    core = settings(("#", attempts(2)), ("jms.queue.#", attempts(5)), ("jms.topic.#", attempts(5)))
    configuration, result = converted(tmp_path, core)
    assert [each.match for each in configuration.broker.address_settings] == ["#"]
    found = settings_repository(configuration.broker)
    assert found.match("orders").max_delivery_attempts == found.match("other").max_delivery_attempts == 5
    assert result.left_out == []


def test_each_queue_and_topic_has_its_match_where_they_differ(tmp_path: Path) -> None:
    """The more specific one of version 1 counts, and what is in no file has what is common."""
    core = settings(
        ("#", attempts(2) + "<redelivery-delay>7</redelivery-delay>"),
        ("jms.queue.#", attempts(5)),
        ("jms.topic.#", attempts(6)),
        ("jms.queue.eu.#", attempts(8)),
    )
    configuration, result = converted(tmp_path, core)
    found = settings_repository(configuration.broker)
    tried = {name: found.match(name).max_delivery_attempts for name in ("orders", "eu.invoices", "news", "eu.more")}
    assert tried == {"orders": 5, "eu.invoices": 8, "news": 6, "eu.more": 8}
    assert {found.match(name).redelivery_delay_ms for name in ("orders", "news", "other")} == {7}
    assert found.match("other").max_delivery_attempts == 10  # the default
    (told,) = result.left_out
    assert ":7: address-settings of queues and topics differ for '#'" in told


def test_permissions_of_queues_and_topics(tmp_path: Path) -> None:
    """Nobody gets a right by it: any other address has the roles that both have."""
    core = """<security-settings>
<security-setting match="jms.queue.#"><permission type="send" roles="sellers,all"/></security-setting>
<security-setting match="jms.topic.#"><permission type="send" roles="press,all"/></security-setting>
</security-settings>"""
    configuration, _ = converted(tmp_path, core)
    found = {rule.match: sorted(rule.permissions["send"]) for rule in all_security_rules(configuration.broker)}
    assert found == {
        "orders": ["all", "sellers"], "eu.invoices": ["all", "sellers"], "news": ["all", "press"], "#": ["all"],
    }  # fmt: skip


def test_diverts_and_dead_letters_and_a_bridge(tmp_path: Path) -> None:
    core = """<connectors><connector name="c">tcp://127.0.0.1:61617</connector></connectors>
<diverts><divert name="d"><address>jms.topic.news</address>
<forwarding-address>jms.queue.orders</forwarding-address></divert></diverts>
<bridges><bridge name="b"><queue-name>jms.queue.orders</queue-name>
<forwarding-address>jms.queue.there</forwarding-address>
<static-connectors><connector-ref>c</connector-ref></static-connectors></bridge></bridges>"""
    configuration, result = converted(tmp_path, core)
    (divert,) = configuration.broker.diverts
    assert (divert.address, divert.forwarding_address) == ("news", "orders")
    assert "<queue-name>orders</queue-name>" in result.text
    (told,) = result.left_out
    assert "'jms.queue.there' is an address of another node, and stays: write 'there' if" in told


def test_a_file_of_version_2_is_not_converted(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("<configuration><core/></configuration>")
    with pytest.raises(ConfigError, match="is not a standalone.xml .* or a broker.xml of version 1"):
        convert_file(path, {})
