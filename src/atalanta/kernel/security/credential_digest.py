"""A digest of credentials: what caches of logins keep instead of a password."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.ports import Ids


class CredentialDigest:
    """Digests of credentials, with a salt of this process that is created for the first of them."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.salt: bytes = b""

    def of(self, parts: list[bytes]) -> bytes:
        """Returns the digest of the parts: other parts have another one."""
        if not self.salt:
            self.salt = self.ids.secret(32)
        digest = hashlib.blake2b(key=self.salt, digest_size=32)
        for part in parts:
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.digest()
