"""The proof of the cluster's password between two nodes of ours, without sending it.

The node that dials sends CLUSTER_CONNECT with `CHALLENGE_USER` and a nonce in place of user and password. The other
node answers CLUSTER_CHALLENGE with its own nonce and its proof, then the dialing node sends its proof, CLUSTER_PROOF. A
real Artemis answers that the user is not authorized. Sessions on a connection with a proof have `PROVEN_PASSWORD`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Final

CHALLENGE_USER: Final = "atalanta challenge 1"
PROVEN_PASSWORD: Final = "atalanta proven 1"
NONCE_BYTES: Final = 16
ACCEPT: Final = "accept"  # the proof of the node that was dialed
DIAL: Final = "dial"


class ClusterNonces:
    """The nonces of one login: of the dialing node and of the other, as hexadecimal text."""

    def __init__(self, dial: str, accept: str) -> None:
        self.dial = dial
        self.accept = accept

    def proof(self, user: str, password: str, side: str, node_id: str, target: str = "") -> str:
        """Returns the HMAC-SHA256 of the login, as hexadecimal text.

        `side` and `node_id` are those of the node that proves itself. `target` is the address that was dialed if
        discovery named it: the login cannot be passed on to a node with another address.
        """
        key = json.dumps([user, password]).encode()
        text = json.dumps([side, self.dial, self.accept, node_id, target]).encode()
        return hmac.new(key, text, hashlib.sha256).hexdigest()


class PeerChallenge:
    """The challenge of a connection that another node opened. It serves once."""

    def __init__(self) -> None:
        self.nonces: ClusterNonces | None = None

    def begin(self, dial: str, accept: str) -> ClusterNonces:
        """Returns the nonces of a new challenge."""
        nonces = ClusterNonces(dial, accept)
        self.nonces = nonces
        return nonces

    def end(self) -> ClusterNonces | None:
        """Ends the challenge and returns its nonces; None if there is none."""
        nonces = self.nonces
        self.nonces = None
        return nonces


def same_proof(first: str, second: str) -> bool:
    """Compares two proofs in equal time."""
    return hmac.compare_digest(
        first.encode("utf-8", "surrogatepass"), second.encode("utf-8", "surrogatepass")
    )
