"""UTF-8 in the form of UTF8Util (artemis-commons): a character beyond U+FFFF is two surrogates.

U+0000 is written as one zero byte (UTF8Util.writeUTF). Java's modified UTF-8 writes C0 80; both are read.
"""

from __future__ import annotations


def encode_java_utf8(text: str) -> bytes:
    """Encodes the text without a length."""
    if text.isascii():
        return text.encode("ascii")
    # The detour through UTF-16 turns a character beyond U+FFFF into a pair of surrogates.
    pairs = text.encode("utf-16-le", "surrogatepass")
    units = [chr(pairs[i] | pairs[i + 1] << 8) for i in range(0, len(pairs), 2)]
    return "".join(units).encode("utf-8", "surrogatepass")


def decode_java_utf8(encoded: bytes) -> str | None:
    """Decodes the text. Returns None if `encoded` is not valid."""
    if encoded.isascii():
        return encoded.decode("ascii")
    try:
        text = encoded.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
