"""UTF-8 as UTF8Util of artemis-commons has it: characters beyond U+FFFF as two surrogates.

U+0000 is written as one zero byte (UTF8Util.writeUTF), unlike Java's modified UTF-8, whose C0 80 is
nevertheless read.
"""

from __future__ import annotations


def encode_java_utf8(text: str) -> bytes:
    """The encoding, without a length."""
    if text.isascii():
        return text.encode("ascii")
    # Through UTF-16, so that what lies beyond U+FFFF becomes a pair of surrogates.
    pairs = text.encode("utf-16-le", "surrogatepass")
    units = [chr(pairs[i] | pairs[i + 1] << 8) for i in range(0, len(pairs), 2)]
    return "".join(units).encode("utf-8", "surrogatepass")


def decode_java_utf8(encoded: bytes) -> str | None:
    """The text, or None if `encoded` is not of this encoding."""
    try:
        text = encoded.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
