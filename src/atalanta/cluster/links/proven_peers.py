"""Memory of the real Artemis nodes that have logged in here with the cluster's password.

Any host can announce itself in a discovery group, so a discovered node has to show that it knows the password before it
gets it in plain text. A real Artemis (to 2.55) that a member has left in good order waits for the login of that member.
After a restart of this node each would wait for the other. So it is recorded durably who has logged in: node id,
address, whether the way there is TLS, and when. The record counts for 30 days, only for that node id at that address,
and with TLS only over TLS. A new cluster-password makes it worthless.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterSettings
    from atalanta.kernel.journal.named_values import NamedValues

PREFIX: Final = "proven."
DAY_MS: Final = 86_400_000
VALID_MS: Final = 30 * DAY_MS
EXACT_TO_MS: Final = 3_600_000  # a login within an hour of the recorded one is no new record
PEERS_MAX: Final = 1_000
CHECK_BYTES: Final = 2  # tells that the password has changed, and next to nothing about it


class ProvenPeer:
    """The last login of a peer: `address` is host:port of its connector, `at_ms` the time."""

    def __init__(self, address: str, secure: bool, at_ms: int, check: str) -> None:
        self.address = address
        self.secure = secure
        self.at_ms = at_ms
        self.check = check

    def covers(self, later: ProvenPeer) -> bool:
        """Returns whether a later login is worth no record of its own."""
        same = (self.address, self.secure, self.check) == (later.address, later.secure, later.check)
        return same and later.at_ms - self.at_ms < EXACT_TO_MS

    def encode(self) -> bytes:
        """Returns the value of the record."""
        return json.dumps([self.address, self.secure, self.at_ms, self.check]).encode()


class ProvenPeers:
    """The peers that have logged in, by node id. Without `remembers` nobody is recorded, and nobody counts."""

    def __init__(self, values: NamedValues, settings: ClusterSettings, remembers: bool) -> None:
        self.values = values
        self.settings = settings
        self.remembers = remembers
        self.peers: dict[str, ProvenPeer] = {}

    def start(self, now: int) -> None:
        """Reads the records of the last run. What is not valid any longer is deleted."""
        for key in self.values.keys(PREFIX):
            node_id = key[len(PREFIX) :]
            peer = _decoded(self.values.get(key) or b"")
            if peer is not None and self._is_valid(now, node_id, peer):
                self.peers[node_id] = peer
            else:
                self.values.forget(key, idle=True)

    def logged_in(self, now: int, node_id: str, address: str, secure: bool) -> None:
        """Records that a peer has sent the password here; `secure`: its connector is dialed with TLS."""
        if not self.remembers:
            return
        peer = ProvenPeer(address, secure, now // 1_000_000, self._check(node_id))
        known = self.peers.get(node_id)
        if known is not None and known.covers(peer):
            return
        if known is None and len(self.peers) >= PEERS_MAX:
            self.forget(min(self.peers, key=lambda each: self.peers[each].at_ms))
        self.peers[node_id] = peer
        self.values.set(PREFIX + node_id, peer.encode(), idle=True)

    def is_still_there(self, now: int, node_id: str) -> None:
        """Records that a peer is logged in now, if it is one that sends the password."""
        known = self.peers.get(node_id)
        if known is not None:
            self.logged_in(now, node_id, known.address, known.secure)

    def forget(self, node_id: str) -> None:
        """Forgets a peer: it proves the password without sending it."""
        if self.peers.pop(node_id, None) is not None:
            self.values.forget(PREFIX + node_id, idle=True)

    def has(self, now: int, node_id: str, address: str, secure: bool) -> bool:
        """Returns whether that node has logged in here lately, from there, and the way to it is no less safe."""
        known = self.peers.get(node_id)
        if known is None or known.address != address or (known.secure and not secure):
            return False
        return self._is_valid(now, node_id, known)

    def _is_valid(self, now: int, node_id: str, peer: ProvenPeer) -> bool:
        recent = now // 1_000_000 - peer.at_ms < VALID_MS
        return self.remembers and recent and peer.check == self._check(node_id)

    def _check(self, node_id: str) -> str:
        settings = self.settings
        text = json.dumps([settings.cluster_user, settings.cluster_password, node_id])
        return hashlib.sha256(text.encode()).digest()[:CHECK_BYTES].hex()


def _decoded(value: bytes) -> ProvenPeer | None:
    """Returns the peer of a record; None if it cannot be read: that peer has to log in here first, as a new one."""
    try:
        stored = json.loads(value)
    except ValueError:
        return None
    if not isinstance(stored, list) or [type(each) for each in stored] != [str, bool, int, str]:
        return None
    return ProvenPeer(stored[0], stored[1], stored[2], stored[3])
