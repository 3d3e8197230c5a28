"""Random properties for tests by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from atalanta.message.properties import (
    Byte,
    Char,
    Float,
    Int,
    Short,
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(1 << 15), (1 << 15) - 1).map(Short),
    st.integers(-(1 << 31), (1 << 31) - 1).map(Int),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False),
    st.text(),
    st.characters(max_codepoint=0xFFFF).map(Char),
    st.binary(),
)
PROPERTIES = st.dictionaries(st.text(max_size=20), VALUES, max_size=8)
