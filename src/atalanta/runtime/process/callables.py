"""Python functions that an operator names in `atalanta.toml`. Input from the network never selects one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class CallableError(Exception):
    """The named function cannot be used; the text gives the reason."""


def load_callable(text: str, folder: Path) -> Callable[..., Any]:
    """Loads `package.module:function`; modules beside the configuration, in `folder`, come first.

    A module is imported once: a change in it takes effect after a restart.
    """
    module_name, _, function_name = text.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        # The operator's module may raise any exception during import.
        raise CallableError(
            f"{module_name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    found = getattr(module, function_name, None)
    if not callable(found):
        raise CallableError(f"{module_name} has no function {function_name}")
    function: Callable[..., Any] = found
    return function
