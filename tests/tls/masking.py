"""Masked passwords as `artemis mask` writes them."""

from __future__ import annotations

from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.padding import PKCS7

from atalanta.tls.password_codec import BLOCK_BYTES, secret_of


def mask(text: str, key: str = "") -> str:
    """Returns `ENC(...)` of a password, as `artemis mask` does."""
    secret = secret_of(key)
    padder = PKCS7(BLOCK_BYTES * 8).padder()
    padded = padder.update(text.encode("utf-8")) + padder.finalize()
    encryptor = Cipher(Blowfish(secret), modes.ECB()).encryptor()
    sealed = encryptor.update(padded) + encryptor.finalize()
    return f"ENC({int.from_bytes(sealed, 'big', signed=True):x})"
