"""Bounds of the texts in what a client announces: others are told of it, and their encoding may take shorter texts.

The loose form carries texts of 65,535 bytes, the tight one of 32,766. Java's clients and bridges use the tight one.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, INVALID_FILTER, BrokerError
from atalanta.kernel.security.resource_limits import NAME_CHARS_MAX
from atalanta.wire.openwire.broker_path import BROKERS_MAX
from atalanta.wire.openwire.encoding.modified_utf8 import encode_modified_utf8
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.encoding.writer import TIGHT_TEXT_BYTES_MAX

# Texts that may be longer than a name: a composite destination has many.
LONG_TEXTS: Final = ("selector", "physical_name")
UTF8_BYTES_MAX: Final = 3  # of a UTF-16 unit


def check_texts(command: DataStructure) -> None:
    """Checks the texts of a command and of the structures in it. BrokerError names the one that is too long."""
    for name in command.names():
        value = getattr(command, name)
        if isinstance(value, str):
            _check_text(command, name, value)
        elif isinstance(value, DataStructure):
            check_texts(value)
        elif isinstance(value, list):
            if len(value) > BROKERS_MAX:
                raise BrokerError(
                    ILLEGAL_STATE,
                    f"{shown_name(command, name)} has {len(value)} entries: at most {BROKERS_MAX} are allowed",
                )
            for each in value:
                if isinstance(each, DataStructure):
                    check_texts(each)


def shown_name(command: DataStructure, name: str) -> str:
    """Returns a field's name as ActiveMQ has it: ConsumerInfo.subscriptionName."""
    first, *others = name.split("_")
    return f"{command.__class__.__name__}.{first}{''.join([each.capitalize() for each in others])}"


def fits_tight(text: str) -> bool:
    """Returns True if every client of OpenWire can be told the text."""
    if len(text) * 2 * UTF8_BYTES_MAX <= TIGHT_TEXT_BYTES_MAX:
        return True
    return len(encode_modified_utf8(text)) <= TIGHT_TEXT_BYTES_MAX


def _check_text(command: DataStructure, name: str, text: str) -> None:
    shown = shown_name(command, name)
    if name in LONG_TEXTS:
        if not fits_tight(text):
            code = INVALID_FILTER if name == "selector" else ILLEGAL_STATE
            raise BrokerError(code, f"{shown} is too long: at most {TIGHT_TEXT_BYTES_MAX} bytes are allowed")
    elif len(text) > NAME_CHARS_MAX:
        raise BrokerError(
            ILLEGAL_STATE, f"{shown} has {len(text)} characters: at most {NAME_CHARS_MAX} are allowed"
        )
