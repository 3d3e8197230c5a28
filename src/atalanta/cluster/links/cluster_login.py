"""The login at another node with the cluster's credentials: a challenge first, plain text only if it may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.ports import Ids
from atalanta.kernel.security.cluster_proof import (
    ACCEPT,
    CHALLENGE_USER,
    DIAL,
    NONCE_BYTES,
    PROVEN_PASSWORD,
    ClusterNonces,
    same_proof,
)
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterChallenge, ClusterConnect, ClusterProof
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterSettings

WITHHELD: Final = (
    "a host that discovery names does not prove that it knows the cluster-password, as an Atalanta node does:"
    " for a real Artemis name its address in static-connectors, or set cluster-plain-password = true in atalanta.toml"
)


class ClusterLogin:
    """The state of one login. `refused`: the peer knows other credentials.

    `discovered` is the dialed address if discovery named it: any host can send that. Its peer must prove that it knows
    the password, unless `plain_password` allows plain text. Other peers, such as a real Artemis, get the password if
    they do not know the challenge. `withheld` is called with the address of a peer that gets none, and the remedy;
    then `told` is set.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        node_id: str,
        discovered: str,
        plain_password: bool,
        withheld: Callable[[str, str], None],
    ) -> None:
        self.settings = settings
        self.node_id = node_id
        self.discovered = discovered
        self.withheld = withheld
        self.refused: bool = False
        self.told: bool = False
        self._may_be_plain: bool = not discovered or plain_password
        self.proven: bool = False  # the peer knows the password
        self._plain: bool = False  # the password was sent
        self._nonce: str = ""

    def first(self, ids: Ids, is_real: bool) -> Packet:
        """Returns the first packet: a challenge, or the credentials for a known real Artemis that may get them.

        A real Artemis takes a challenge for a failed login. From 2.54 on it logs, counts and reports it.
        """
        if is_real and self._may_be_plain:
            self._plain = True
            return ClusterConnect(self.settings.cluster_user, self.settings.cluster_password)
        return self.challenge(ids)

    @property
    def answers_challenge(self) -> bool:
        """Returns whether the next answer is that of a peer that does not know the challenge: a real Artemis."""
        return bool(self._nonce) and not self._plain

    def challenge(self, ids: Ids) -> Packet:
        """Returns the challenge to send in place of the cluster's credentials."""
        self._nonce = ids.secret(NONCE_BYTES).hex()
        return ClusterConnect(CHALLENGE_USER, self._nonce)

    def proof(self, packet: ClusterChallenge) -> Packet:
        """Checks the peer's proof, and returns this node's, or none for a peer with another password."""
        if not self._nonce:
            raise ProtocolError("CLUSTER_CHALLENGE that was not asked for")
        user, password = self.settings.cluster_user, self.settings.cluster_password
        nonces = ClusterNonces(self._nonce, packet.nonce)
        self._nonce = ""
        expected = nonces.proof(user, password, ACCEPT, packet.node_id)
        proof = ""
        if same_proof(expected, packet.proof):
            self.proven = True
            proof = nonces.proof(user, password, DIAL, self.node_id, self.discovered)
        return ClusterProof(self.node_id, self.discovered, proof)

    def answered(self, authorized: bool) -> Packet | None:
        """Returns the next packet to send, None when the login is complete. Raises ProtocolError."""
        challenged = not self._nonce
        if not self.proven and not self._may_be_plain:
            self.refused = challenged
            if not challenged:
                self.told = True
                self.withheld(self.discovered, WITHHELD)
            raise ProtocolError("the peer does not prove the cluster-password")
        if authorized:
            return None
        if challenged or self._plain:
            self.refused = True
            raise ProtocolError("the peer refuses our cluster-user and cluster-password")
        self._plain = True
        return ClusterConnect(self.settings.cluster_user, self.settings.cluster_password)

    @property
    def session_password(self) -> str:
        """Returns the password for sessions on this link: none after a proof."""
        return PROVEN_PASSWORD if self.proven else self.settings.cluster_password
