"""Operations for message counters (QueueControl, ActiveMQServerControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import Attributes, Call, Operations, Parameters, number_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.management.message_counters import MessageCounters


class CounterOperations:
    """The operations of the resource `queue.NAME` and those of the resource `broker`."""

    def __init__(self, counters: MessageCounters) -> None:
        self.counters = counters
        self.broker_attributes: Attributes = {
            "MessageCounterEnabled": lambda call: counters.enabled,
            "MessageCounterSamplePeriod": lambda call: counters.sample_period_ms,
            "MessageCounterMaxDayCount": lambda call: counters.days_max,
        }
        self.broker_operations: Operations = {
            "enableMessageCounters": [("", self.enable)],
            "disableMessageCounters": [("", self.disable)],
            "resetAllMessageCounters": [("", self.reset_all)],
            "resetAllMessageCounterHistories": [("", self.reset_histories)],
            "setMessageCounterSamplePeriod": [("l", self.set_sample_period)],
            "setMessageCounterMaxDayCount": [("i", self.set_days)],
        }
        self.queue_operations: Operations = {
            "listMessageCounter": [("", self.list_counter)],
            "listMessageCounterHistory": [("", self.list_history)],
            "resetMessageCounter": [("", self.reset_counter)],
            "listMessageCounterAsHTML": [("", self.as_html)],
            "listMessageCounterHistoryAsHTML": [("", self.as_html)],
        }

    def list_counter(self, call: Call, given: Parameters) -> object:
        return encode_json(self.counters.of(call.queue).shown(call.queue))

    def list_history(self, call: Call, given: Parameters) -> object:
        return encode_json(self.counters.history(call.now, call.queue))

    def reset_counter(self, call: Call, given: Parameters) -> object:
        self.counters.of(call.queue).reset()
        return None

    def as_html(self, call: Call, given: Parameters) -> object:
        raise BrokerError(
            ILLEGAL_STATE,
            "no HTML is made here: ask for listMessageCounter or listMessageCounterHistory",
        )

    def enable(self, call: Call, given: Parameters) -> object:
        self.counters.enable(call.now)
        return None

    def disable(self, call: Call, given: Parameters) -> object:
        self.counters.disable()
        return None

    def reset_all(self, call: Call, given: Parameters) -> object:
        self.counters.reset_all()
        return None

    def reset_histories(self, call: Call, given: Parameters) -> object:
        self.counters.reset_histories()
        return None

    def set_sample_period(self, call: Call, given: Parameters) -> object:
        """Sets the period in milliseconds. A value below a second is allowed, like in Artemis."""
        period_ms = number_of(given, 0)
        if period_ms <= 0:
            why = f"AMQ229047: invalid value: {period_ms} sample period must be greater than 0"
            raise BrokerError(ILLEGAL_STATE, why)
        self.counters.set_sample_period(call.now, period_ms)
        return None

    def set_days(self, call: Call, given: Parameters) -> object:
        """Sets the days for every queue (in Artemis only for queues created later)."""
        days = number_of(given, 0)
        if days <= 0:
            raise BrokerError(ILLEGAL_STATE, f"the days must be greater than 0 (actual value: {days})")
        self.counters.days_max = days
        return None
