"""A mutant plants a bug: it is a function that replaces what it spoils, until the patch is undone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]
