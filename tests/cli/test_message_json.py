"""Messages as lines of JSON: what is no base64 is refused by its place."""

from __future__ import annotations

import pytest

from atalanta.cli.message_json import decoded
from atalanta.cli.outcome import Refused


@pytest.mark.parametrize("text", ["?", "\u00e9", "AAE"])
def test_what_is_no_base64_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Refused, match="line 3: not base64"):
        decoded(text, "line 3")
