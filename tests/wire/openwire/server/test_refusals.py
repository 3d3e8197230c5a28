"""When a message that another broker refuses is given up."""

from __future__ import annotations

from atalanta.wire.openwire.encoding.throwable import Throwable
from atalanta.wire.openwire.server.bridge.refusals import REFUSALS_MAX, Refusals


def test_a_message_is_given_up_after_several_refusals() -> None:
    refusals = Refusals()
    cause = Throwable("javax.jms.JMSException", "no")
    assert [refusals.is_final("m", cause) for _ in range(REFUSALS_MAX)] == [False] * (REFUSALS_MAX - 1) + [True]
    assert not refusals.is_final("m", cause)
    refusals.accepted("m")
    assert refusals.counts == {}


def test_what_an_operator_can_change_is_tried_for_ever() -> None:
    refusals = Refusals()
    for name in ("java.lang.SecurityException", "javax.jms.ResourceAllocationException", "x.BrokerStoppedException"):
        assert not any(refusals.is_final("m", Throwable(name, "no")) for _ in range(20))
