"""Nodes of a parsed selector, which evaluate a message.

A condition is TRUE, FALSE or UNKNOWN; only TRUE selects a message. Values are bool, int, float, str, bytes, or
None for a missing property. The semantics are those of Artemis' artemis-selector filter classes, with three
exceptions for which JMS differs from Artemis. `NOT a = b` negates the comparison. A comparison with a missing
value is unknown on either side of `=`. Numbers compare by value, independent of width and order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from atalanta.message.selector.like import LikePattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.message.message import Message

FALSE: Final = 0
TRUE: Final = 1
UNKNOWN: Final = -1

EQUAL: Final = 0
LESS: Final = 1
LESS_EQUAL: Final = 2
GREATER: Final = 3
GREATER_EQUAL: Final = 4

ID_PREFIX: Final = "ID:"


class Expression:
    """A node with a value. `depth` limits the recursion of an evaluation."""

    depth: int = 1

    def evaluate(self, message: Message) -> object:
        raise NotImplementedError


class Constant(Expression):
    """A literal number or string."""

    def __init__(self, value: object) -> None:
        self.value: object = value

    def evaluate(self, message: Message) -> object:
        return self.value


class Property(Expression):
    """A property of the message by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def evaluate(self, message: Message) -> object:
        return message.property_value(self.name)


class Header(Property):
    """A header under its Artemis name (AMQPriority …) or its JMS name (JMSPriority …); see HEADERS."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(name)
        self.code = code

    def evaluate(self, message: Message) -> object:
        value = _header(message, self.code)
        if value is None:
            return message.property_value(self.name)
        return value


USER_ID: Final = 0
PRIORITY: Final = 1
TIMESTAMP: Final = 2
DURABLE: Final = 3
DELIVERY_MODE: Final = 4
EXPIRATION: Final = 5
SIZE: Final = 6
ADDRESS: Final = 7
GROUP_ID: Final = 8

# Artemis' names (FilterConstants), and the JMS names that a JMS client translates into them.
# JMSType and JMSCorrelationID are sent as properties of these names and need no entry.
HEADERS: Final = {
    "AMQUserID": USER_ID,
    "AMQPriority": PRIORITY,
    "AMQTimestamp": TIMESTAMP,
    "AMQDurable": DURABLE,
    "AMQExpiration": EXPIRATION,
    "AMQSize": SIZE,
    "AMQAddress": ADDRESS,
    "AMQGroupID": GROUP_ID,
    "JMSMessageID": USER_ID,
    "JMSPriority": PRIORITY,
    "JMSTimestamp": TIMESTAMP,
    "JMSDeliveryMode": DELIVERY_MODE,
    "JMSExpiration": EXPIRATION,
    "JMSXGroupID": GROUP_ID,
}


def _header(message: Message, code: int) -> object:
    if code == USER_ID:
        return _user_id_text(message.user_id)
    if code == PRIORITY:
        return message.priority
    if code == TIMESTAMP:
        return message.timestamp
    if code == DURABLE:
        return "DURABLE" if message.durable else "NON_DURABLE"
    if code == DELIVERY_MODE:
        return "PERSISTENT" if message.durable else "NON_PERSISTENT"
    if code == EXPIRATION:
        return message.expiration
    if code == SIZE:
        return message.size
    if code == ADDRESS:
        return message.address
    return message.group_id


def _user_id_text(user_id: bytes | None) -> str | None:
    if user_id is None:
        return None
    digits = user_id.hex()
    groups = [digits[0:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]]
    return ID_PREFIX + "-".join(groups)


class Negative(Expression):
    """A minus sign; unknown if the operand is not a number."""

    def __init__(self, operand: Expression) -> None:
        self.operand = operand
        self.depth = operand.depth + 1

    def evaluate(self, message: Message) -> object:
        value = self.operand.evaluate(message)
        if isinstance(value, bool):
            return None
        if isinstance(value, (int, float)):
            return -value
        return None


class Arithmetic(Expression):
    """`+ - * / %`, where `+` also joins strings. A division yields a double. Unknown if an operand is not a number."""

    def __init__(self, symbol: str, left: Expression, right: Expression, convert: bool) -> None:
        self.symbol = symbol
        self.left = left
        self.right = right
        self.convert = convert
        self.depth = max(left.depth, right.depth) + 1

    def evaluate(self, message: Message) -> object:
        left = self.left.evaluate(message)
        if left is None:
            return None
        right = self.right.evaluate(message)
        if right is None:
            return None
        if self.symbol == "+" and isinstance(left, str):
            return left + _join_text(right)
        if self.convert:
            left = _as_number(left)
            right = _as_number(right)
        if isinstance(left, bool) or isinstance(right, bool):
            return None
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            return None
        return _calculate(self.symbol, left, right)


def _join_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _as_number(value: object) -> object:
    """Converts a numeric string to its number. Returns any other value unchanged."""
    if not isinstance(value, str) or len(value) > 40:
        return value
    try:
        return float(value) if "." in value or "e" in value or "E" in value else int(value)
    except ValueError:
        return value


def _bounded(product: int) -> int | float:
    """Returns infinity beyond 128 bits. A chain of products must not grow without limit (Java's long wraps)."""
    if product.bit_length() <= 128:
        return product
    return math.inf if product > 0 else -math.inf


def _calculate(symbol: str, left: int | float, right: int | float) -> object:
    if symbol == "+":
        return left + right
    if symbol == "-":
        return left - right
    if symbol == "*":
        if isinstance(left, int) and isinstance(right, int):
            return _bounded(left * right)
        return float(left) * float(right)
    dividend = float(left)
    divisor = float(right)
    if symbol == "/":
        if divisor != 0.0:
            return dividend / divisor
        if dividend == 0.0 or math.isnan(dividend):
            return math.nan
        return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)
    if divisor == 0.0 or math.isinf(dividend):
        return math.nan
    return math.fmod(dividend, divisor)


class Condition(Expression):
    """An expression whose value is TRUE, FALSE or UNKNOWN."""

    def test(self, message: Message) -> int:
        raise NotImplementedError

    def evaluate(self, message: Message) -> object:
        answer = self.test(message)
        if answer == UNKNOWN:
            return None
        return answer == TRUE


class Literal(Condition):
    """TRUE, FALSE, or NULL as a condition."""

    def __init__(self, answer: int) -> None:
        self.answer = answer

    def test(self, message: Message) -> int:
        return self.answer


class Cast(Condition):
    """A property used as a condition: TRUE if its value is the boolean true."""

    def __init__(self, operand: Expression) -> None:
        self.operand = operand
        self.depth = operand.depth + 1

    def test(self, message: Message) -> int:
        value = self.operand.evaluate(message)
        if value is None:
            return UNKNOWN
        return TRUE if value is True else FALSE


class Not(Condition):
    def __init__(self, operand: Condition) -> None:
        self.operand = operand
        self.depth = operand.depth + 1

    def test(self, message: Message) -> int:
        answer = self.operand.test(message)
        if answer == UNKNOWN:
            return UNKNOWN
        return FALSE if answer == TRUE else TRUE


class And(Condition):
    def __init__(self, terms: list[Condition]) -> None:
        self.terms = terms
        self.depth = 1 + max([term.depth for term in terms])

    def test(self, message: Message) -> int:
        result = TRUE
        for term in self.terms:
            answer = term.test(message)
            if answer == FALSE:
                return FALSE
            if answer == UNKNOWN:
                result = UNKNOWN
        return result


class Or(Condition):
    def __init__(self, terms: list[Condition]) -> None:
        self.terms = terms
        self.depth = 1 + max([term.depth for term in terms])

    def test(self, message: Message) -> int:
        result = FALSE
        for term in self.terms:
            answer = term.test(message)
            if answer == TRUE:
                return TRUE
            if answer == UNKNOWN:
                result = UNKNOWN
        return result


class Comparison(Condition):
    """`= < <= > >=`: unknown if a side is missing, false between different types."""

    def __init__(self, operator: int, left: Expression, right: Expression, convert: bool) -> None:
        self.operator = operator
        self.left = left
        self.right = right
        self.convert = convert
        self.depth = max(left.depth, right.depth) + 1

    def test(self, message: Message) -> int:
        left = self.left.evaluate(message)
        if left is None:
            return UNKNOWN
        right = self.right.evaluate(message)
        if right is None:
            return UNKNOWN
        if self.convert and isinstance(left, str) != isinstance(right, str):
            if isinstance(left, bool) or isinstance(right, bool):
                left = _as_boolean(left)
                right = _as_boolean(right)
            else:
                left = _as_number(left)
                right = _as_number(right)
        if isinstance(left, str):
            if isinstance(right, str):
                return _ordered_strings(self.operator, left, right)
            return FALSE
        if isinstance(left, bool) or isinstance(right, bool):
            if isinstance(left, bool) and isinstance(right, bool):
                return _ordered_numbers(self.operator, int(left), int(right))
            return FALSE
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return _ordered_numbers(self.operator, left, right)
        return FALSE


def _as_boolean(value: object) -> object:
    """Returns a text as a boolean, as Boolean.valueOf in Java does: all but `true` is False."""
    return value.lower() == "true" if isinstance(value, str) else value


def _ordered_strings(operator: int, left: str, right: str) -> int:
    if operator == EQUAL:
        return TRUE if left == right else FALSE
    if operator == LESS:
        return TRUE if left < right else FALSE
    if operator == LESS_EQUAL:
        return TRUE if left <= right else FALSE
    if operator == GREATER:
        return TRUE if left > right else FALSE
    return TRUE if left >= right else FALSE


def _ordered_numbers(operator: int, left: int | float, right: int | float) -> int:
    if operator == EQUAL:
        return TRUE if left == right else FALSE
    if operator == LESS:
        return TRUE if left < right else FALSE
    if operator == LESS_EQUAL:
        return TRUE if left <= right else FALSE
    if operator == GREATER:
        return TRUE if left > right else FALSE
    return TRUE if left >= right else FALSE


class IsNull(Condition):
    def __init__(self, operand: Expression) -> None:
        self.operand = operand
        self.depth = operand.depth + 1

    def test(self, message: Message) -> int:
        return TRUE if self.operand.evaluate(message) is None else FALSE


class In(Condition):
    """`name IN ('a', 'b')`: unknown unless the property is a string."""

    def __init__(self, operand: Expression, members: frozenset[str]) -> None:
        self.operand = operand
        self.members = members
        self.depth = operand.depth + 1

    def test(self, message: Message) -> int:
        value = self.operand.evaluate(message)
        if not isinstance(value, str):
            return UNKNOWN
        return TRUE if value in self.members else FALSE


class Like(Condition):
    """`name LIKE 'pattern'`: unknown if the property is missing, false for a value that is not a string."""

    def __init__(self, operand: Expression, pattern: LikePattern) -> None:
        self.operand = operand
        self.pattern = pattern
        self.depth = operand.depth + 1

    def test(self, message: Message) -> int:
        value = self.operand.evaluate(message)
        if value is None:
            return UNKNOWN
        if not isinstance(value, str):
            return FALSE
        return TRUE if self.pattern.matches(value) else FALSE


class XPath(Condition):
    """`XPATH 'expression'`, with the test that message/selector/xpath.py makes of the expression; never unknown."""

    def __init__(self, matches: Callable[[Message], bool]) -> None:
        self.matches = matches

    def test(self, message: Message) -> int:
        return TRUE if self.matches(message) else FALSE
