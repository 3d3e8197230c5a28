"""Stored passwords: plain text, or the one-way form `ENC(iterations:salt:hash)` of `artemis mask --hash`.

The hash is PBKDF2 with HMAC-SHA1 over the password in UTF-8, salt and hash in hexadecimal, by default 1024
iterations (Artemis' DefaultSensitiveStringCodec and SecureHashProcessor).
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from atalanta.message.encoding.digits import all_digits

ITERATIONS_MAX: Final = 10_000_000
HASH_BYTES_MAX: Final = 256
SHA1_BYTES: Final = 20


class StoredPassword:
    """A stored password. `verify` compares in constant time. ValueError for a malformed `ENC(...)`.

    `rounds` is the work of its hash, in computations of HMAC-SHA1. `refusal_rounds` is the work of a refusal: that of
    the strongest hash of all users, so that the time of a refusal tells nothing about the user.
    """

    def __init__(self, text: str) -> None:
        self.plain: bytes = b""
        self.iterations: int = 0
        self.salt: bytes = b""
        self.hash: bytes = b""
        self.rounds: int = 0
        self.refusal_rounds: int = 0
        if text.startswith("ENC(") and text.endswith(")"):
            self._parse(text[4:-1])
        else:
            self.plain = text.encode("utf-8", "surrogatepass")

    def _parse(self, text: str) -> None:
        parts = text.split(":")
        if len(parts) != 3:
            raise ValueError("a hashed password has the form ENC(iterations:salt:hash)")
        if not all_digits(parts[0], 9):
            raise ValueError(f"'{parts[0]}' is not a number of iterations")
        self.iterations = int(parts[0])
        if not 1 <= self.iterations <= ITERATIONS_MAX:
            raise ValueError(f"{self.iterations} iterations are not between 1 and {ITERATIONS_MAX}")
        try:
            self.salt = bytes.fromhex(parts[1])
            self.hash = bytes.fromhex(parts[2])
        except ValueError:
            raise ValueError("salt and hash of a password are hexadecimal") from None
        if not 1 <= len(self.hash) <= HASH_BYTES_MAX:
            raise ValueError(f"a password's hash has 1 to {HASH_BYTES_MAX} bytes")
        self.rounds = self.iterations * (-(-len(self.hash) // SHA1_BYTES))

    @property
    def slow(self) -> bool:
        """Returns True if `verify` computes a hash: about 1 ms per 1,000 iterations, too long for the event loop."""
        return self.iterations > 0

    def same(self, other: StoredPassword) -> bool:
        """Returns True if both come from the same text (two salts of one password differ)."""
        return (
            self.iterations == other.iterations
            and self.salt == other.salt
            and self.hash == other.hash
            and self.plain == other.plain
        )

    def verify_plain(self, password: str) -> bool:
        """Returns True if the password is stored as plain text, and is this one."""
        given = password.encode("utf-8", "surrogatepass")
        return self.iterations == 0 and hmac.compare_digest(self.plain, given)

    def verify(self, password: str) -> bool:
        """Returns True if the password is this one. A refusal takes the time of `refusal_rounds`."""
        if self.verify_plain(password):
            return True
        given = password.encode("utf-8", "surrogatepass")
        if self.iterations > 0:
            made = hashlib.pbkdf2_hmac("sha1", given, self.salt, self.iterations, len(self.hash))
            if hmac.compare_digest(made, self.hash):
                return True
        if self.refusal_rounds > self.rounds:
            hashlib.pbkdf2_hmac("sha1", given, b"", self.refusal_rounds - self.rounds, SHA1_BYTES)
        return False


def hash_password(password: str, salt: bytes, iterations: int = 1024) -> str:
    """Returns the stored form of `password` with the caller's salt (32 random bytes in Artemis)."""
    made = hashlib.pbkdf2_hmac("sha1", password.encode("utf-8", "surrogatepass"), salt, iterations, 64)
    return f"ENC({iterations}:{salt.hex()}:{made.hex()})"
