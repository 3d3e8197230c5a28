"""Masked passwords: what `artemis mask` writes is read back."""

from __future__ import annotations

import pytest

from atalanta.tls.password_codec import CODEC, KEY_PROPERTY, codec_key, unmask
from tests.tls.masking import mask

# What DefaultSensitiveStringCodec of 2.44 prints: signed numbers, leading zeros gone.
KNOWN = {
    "password": "3a34fd21b82bf2a822fa49a8d8fa115d",
    "secret": "-41e444c3ed07d6dd",
    "eight888": "-1b5431e305682519dd05b6572705eea3",
    "pässwörd": "-2f26c02b3a47ce2cc1dd8a8e958046b2",
    "hello world longer one": "d76cbf0aa9ff9228352b575842b5805ced9ac15985cee6b",
}


@pytest.mark.parametrize("plain", list(KNOWN))
def test_what_artemis_masks(plain: str) -> None:
    assert unmask(f"ENC({KNOWN[plain]})") == plain
    assert unmask(KNOWN[plain]) == plain
    assert mask(plain) == f"ENC({KNOWN[plain]})"


def test_a_key_of_ones_own() -> None:
    assert unmask("ENC(671c3a5894862cb14ab1f79a29286645)", "own") == "password"


@pytest.mark.parametrize("plain", ["", "a", "seven77", "nine99999", "€", "x" * 200])
def test_there_and_back(plain: str) -> None:
    for key in ("", "another key", "a", "k" * 56):
        assert unmask(mask(plain, key), key) == plain


def test_the_key_comes_from_the_codec_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert codec_key("", {}) == "clusterpassword"
    assert codec_key("", {KEY_PROPERTY: "set"}) == "set"
    assert codec_key(f"{CODEC};key=own", {KEY_PROPERTY: "set"}) == "own"
    monkeypatch.setenv("ARTEMIS_DEFAULT_SENSITIVE_STRING_CODEC_KEY", "of the environment")
    assert unmask(mask("x", "of the environment")) == "x"
    with pytest.raises(ValueError, match="is Java"):
        codec_key("com.example.Codec;key=a", {})
    with pytest.raises(ValueError, match="two-way"):
        codec_key(f"{CODEC};algorithm=one-way", {})


@pytest.mark.parametrize(
    "text", ["ENC(hello)", "ENC()", "ENC(00)", "ENC(1234567890abcdef)", "ENC(" + "f" * 20_000 + ")"]
)
def test_what_is_no_masked_password(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        unmask(text)
    assert text not in str(caught.value)
