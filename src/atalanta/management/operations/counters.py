"""Operations for message counters (QueueControl, ActiveMQServerControl)."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import (
    Attribute,
    Call,
    Operation,
    Operations,
    Parameters,
    number_of,
)
from atalanta.management.request.json_text import encode_json


def list_counter(call: Call, given: Parameters) -> object:
    return encode_json(call.management.counted.of(call.queue).shown(call.queue))


def list_history(call: Call, given: Parameters) -> object:
    return encode_json(call.management.counted.history(call.now, call.queue))


def reset_counter(call: Call, given: Parameters) -> object:
    call.management.counted.of(call.queue).reset()
    return None


def as_html(call: Call, given: Parameters) -> object:
    raise BrokerError(
        ILLEGAL_STATE,
        "no HTML is made here: ask for listMessageCounter or listMessageCounterHistory",
    )


def enable(call: Call, given: Parameters) -> object:
    call.management.counted.enable(call.now)
    return None


def disable(call: Call, given: Parameters) -> object:
    call.management.counted.disable()
    return None


def reset_all(call: Call, given: Parameters) -> object:
    call.management.counted.reset_all()
    return None


def reset_histories(call: Call, given: Parameters) -> object:
    call.management.counted.reset_histories()
    return None


def set_sample_period(call: Call, given: Parameters) -> object:
    """Sets the period in milliseconds. A value below a second is allowed, like in Artemis."""
    period_ms = number_of(given, 0)
    if period_ms <= 0:
        why = f"AMQ229047: invalid value: {period_ms} sample period must be greater than 0"
        raise BrokerError(ILLEGAL_STATE, why)
    call.management.counted.set_sample_period(call.now, period_ms)
    return None


def set_days(call: Call, given: Parameters) -> object:
    """Sets the days for every queue (in Artemis only for queues created later)."""
    days = number_of(given, 0)
    if days <= 0:
        raise BrokerError(ILLEGAL_STATE, f"the days must be greater than 0 (actual value: {days})")
    call.management.counted.days_max = days
    return None


def one(operation: Operation, types: str = "") -> list[tuple[str, Operation]]:
    return [(types, operation)]


COUNTER_ATTRIBUTES: Final[dict[str, Attribute]] = {
    "MessageCounterEnabled": lambda call: call.management.counted.enabled,
    "MessageCounterSamplePeriod": lambda call: call.management.counted.sample_period_ms,
    "MessageCounterMaxDayCount": lambda call: call.management.counted.days_max,
}
COUNTER_OPERATIONS: Final[Operations] = {
    "enableMessageCounters": one(enable),
    "disableMessageCounters": one(disable),
    "resetAllMessageCounters": one(reset_all),
    "resetAllMessageCounterHistories": one(reset_histories),
    "setMessageCounterSamplePeriod": one(set_sample_period, "l"),
    "setMessageCounterMaxDayCount": one(set_days, "i"),
}
QUEUE_COUNTER_OPERATIONS: Final[Operations] = {
    "listMessageCounter": one(list_counter),
    "listMessageCounterHistory": one(list_history),
    "resetMessageCounter": one(reset_counter),
    "listMessageCounterAsHTML": one(as_html),
    "listMessageCounterHistoryAsHTML": one(as_html),
}
