"""A change of the stored settings, as management requests it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ADDRESS_SETTING: Final = "address-setting"
SECURITY_SETTING: Final = "security-setting"


@dataclass
class SettingsChange:
    """A new setting of one match, or its removal.

    `element` is the name of the element in broker.xml. `values` are names of child elements -> texts for an address
    setting, permissions -> roles for a security setting, None for the removal.
    """

    element: str
    match: str
    values: dict[str, str] | None
