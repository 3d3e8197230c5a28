"""Masked passwords, `ENC(...)`, as `artemis mask` writes them: DefaultSensitiveStringCodec, two-way.

A mask hides a password from a glance, not from a reader of the file: without a configured key, the key is the
same everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.padding import PKCS7

CODEC: Final = "org.apache.activemq.artemis.utils.DefaultSensitiveStringCodec"
DEFAULT_KEY: Final = "clusterpassword"
KEY_PROPERTY: Final = "artemis.default.sensitive.string.codec.key"
KEY_VARIABLE: Final = "ARTEMIS_DEFAULT_SENSITIVE_STRING_CODEC_KEY"
BLOCK_BYTES: Final = 8
LENGTH_MAX: Final = 10_000


def is_masked(text: str) -> bool:
    return text.startswith("ENC(") and text.endswith(")")


def codec_key(codec: str, values: Mapping[str, str]) -> str:
    """Returns the key of a `<password-codec>` (its class, then `;key=…`), else the configured key, else the default
    key.

    `values` are system properties and environment. ValueError for a class other than Artemis' default.
    """
    name, *rest = codec.split(";")
    if name.strip() not in ("", CODEC):
        raise ValueError(f"{name.strip()} is Java: only {CODEC.rpartition('.')[2]} is known")
    for part in rest:
        word, _, value = part.partition("=")
        if word.strip() == "algorithm" and value.strip() != "two-way":
            raise ValueError("only the two-way algorithm can be read back")
        if word.strip() == "key" and value:
            return value
    return values.get(KEY_PROPERTY, "").strip() or values.get(KEY_VARIABLE, "") or DEFAULT_KEY


def secret_of(key: str) -> bytes:
    """Returns the Blowfish key. Blowfish repeats short keys: a key written several times gives the same result."""
    secret = (key or codec_key("", os.environ)).encode("utf-8")
    if not 1 <= len(secret) <= 56:
        raise ValueError("a key for masked passwords has 1 to 56 bytes")
    return secret * (4 if len(secret) == 1 else 2 if len(secret) < 4 else 1)


def unmask(text: str, key: str = "") -> str:
    """Unmasks `ENC(text)` or `text`. The text of its ValueError does not contain the password."""
    inner = text[4:-1] if is_masked(text) else text
    if len(inner) > LENGTH_MAX:
        raise ValueError("the masked password is too long")
    secret = secret_of(key)
    try:
        number = int(inner, 16)
    except ValueError:
        raise ValueError("not a masked password: hexadecimal digits are expected") from None
    # Java writes the bytes as one signed number, without leading zeros.
    size = number.bit_length() // 8 + 1
    size += -size % BLOCK_BYTES
    decryptor = Cipher(Blowfish(secret), modes.ECB()).decryptor()
    padded = decryptor.update(number.to_bytes(size, "big", signed=True)) + decryptor.finalize()
    unpadder = PKCS7(BLOCK_BYTES * 8).unpadder()
    try:
        return (unpadder.update(padded) + unpadder.finalize()).decode("utf-8")
    except ValueError:
        raise ValueError("the masked password cannot be read with this key") from None
