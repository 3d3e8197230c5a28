"""The names of the epochs' directories in the journal folder of a shared store (epoch_folders.py)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from atalanta.message.encoding.digits import all_digits

EPOCHS_NAME: Final = "epochs"
NAME_DIGITS: Final = 8


def epoch_name(number: int) -> str:
    """Returns the name of an epoch's folders; names sort like numbers."""
    return f"{number:0{NAME_DIGITS}d}"


def epoch_number(name: str) -> int:
    """Returns the number in a folder's name; 0 for any other name."""
    if all_digits(name, len(name)) and len(name) >= NAME_DIGITS and name == epoch_name(int(name)):
        return int(name)
    return 0


def epochs_of(journal: Path) -> list[int]:
    """Returns the numbers of all epochs of a journal folder, sorted; none for the folder of a node without them."""
    try:
        names = os.listdir(journal / EPOCHS_NAME)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(number for number in map(epoch_number, names) if number > 0)


def has_epochs(journal: Path) -> bool:
    """Returns whether the journal folder belongs to processes with a shared store."""
    return (journal / EPOCHS_NAME).is_dir()
