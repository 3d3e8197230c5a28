"""Java's modified UTF-8 (DataOutput.writeUTF): U+0000 is C0 80, a character beyond U+FFFF is two surrogates."""

from __future__ import annotations

from atalanta.message.encoding.java_utf8 import encode_java_utf8


def encode_modified_utf8(text: str) -> bytes:
    """Encodes the text without a length. `decode_java_utf8` is the counterpart."""
    encoded = encode_java_utf8(text)
    return encoded.replace(b"\0", b"\xc0\x80") if "\0" in text else encoded
