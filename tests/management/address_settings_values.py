"""The parameters of the longest form of addAddressSettings."""

from __future__ import annotations

# Each parameter of the longest form after the match, with values that are not defaults.
LONG = [
    "DLA", "EXP", 7, True, 3, 20, 10, 5, 4, 1.5, 1000, 5, True, "FAIL", 5, 10, "KILL", True, True, True, True,
    False, False, False, False, "FORCE", "FORCE", -1, "key", True, True, True, 4, "first", 9, True, 2, 8, "ANYCAST",
    "ANYCAST", 99, 11, True, 12, 13, 14, 0.5, 15, True, "D.", ".d", True, "E.", ".e", 16, 17, False,
]  # fmt: skip
