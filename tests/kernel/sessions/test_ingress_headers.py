"""The sender's name and the time of arrival in messages."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.security.security import Identity, Security
from atalanta.kernel.sessions.ingress_headers import INGRESS_TIMESTAMP, VALIDATED_USER
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench


def only_message(bench: Bench, queue: str) -> dict[str, object]:
    bench.settle()
    (message,) = bench.broker.store.messages.values()
    names = (VALIDATED_USER, INGRESS_TIMESTAMP, "n")
    return {name: message.property_value(name) for name in names if message.has_property(name)}


def test_messages_get_the_name_of_their_sender_who_cannot_choose_it() -> None:
    bench = Bench(BrokerConfig(populate_validated_user=True))
    bench.queue("q")
    bench.session().send(bench.now, bench.message("q", n=7, _AMQ_VALIDATED_USER="somebody"), 1)
    assert only_message(bench, "q") == {VALIDATED_USER: "tester", "n": 7}
    bench.restart()
    assert only_message(bench, "q") == {VALIDATED_USER: "tester", "n": 7}


def test_a_peer_forwards_the_name_it_got() -> None:
    bench = Bench(BrokerConfig(populate_validated_user=True, reject_empty_validated_user=True))
    bench.queue("q")
    session = bench.session()
    session.identity = Identity("cluster", (), True)
    session.send(bench.now, bench.message("q", _AMQ_VALIDATED_USER="somebody"), 1)
    assert only_message(bench, "q") == {VALIDATED_USER: "somebody"}


def test_a_message_without_a_sender_is_refused_and_so_is_its_transaction() -> None:
    bench = Bench(BrokerConfig(reject_empty_validated_user=True))
    bench.queue("q")
    for session in (bench.session(), bench.session(transacted=True)):
        with pytest.raises(BrokerError) as refused:
            session.send(bench.now, bench.message("q"), 1)
        assert refused.value.code == ILLEGAL_STATE
        assert (session.transaction.rollback_only is not None) == (not session.auto_commit_sends)
    assert bench.broker.store.messages == {}
    bench.session().send(bench.now, bench.message("q", _AMQ_VALIDATED_USER="named"), 1)
    assert only_message(bench, "q") == {VALIDATED_USER: "named"}


def test_the_time_of_arrival_where_the_address_asks_for_it_also_after_a_reload() -> None:
    settings = AddressSettingsRepository()
    bench = Bench(settings=settings)
    bench.queue("q")
    assert not bench.broker.ingress_headers.wanted
    fresh = AddressSettingsRepository()
    fresh.add("#", {"enable_ingress_timestamp": False})
    fresh.add("q", {"enable_ingress_timestamp": True})
    bench.broker.reload(bench.now, BrokerConfig(), fresh, Security(enabled=False))
    bench.queue("other")
    bench.session().send(bench.now, bench.message("q"), 1)
    assert only_message(bench, "q") == {INGRESS_TIMESTAMP: bench.now // 1_000_000}
    bench.broker.store.messages.clear()
    bench.session().send(bench.now, bench.message("other"), 2)
    assert only_message(bench, "other") == {}
