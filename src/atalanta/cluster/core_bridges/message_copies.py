"""The message that a core bridge sends to its target (BridgeImpl.beforeForwardingNoCopy)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from atalanta.kernel.queue.delivery.bridge_origin import origin_of
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.routing.divert_config import PASS, STRIP
from atalanta.message.internal_headers import ORIGIN
from atalanta.message.message import Message
from atalanta.message.properties import Byte

if TYPE_CHECKING:
    from atalanta.cluster.core_bridges.config import CoreBridgeConfig, Transform
    from atalanta.cluster.native_config import OwnBridge
    from atalanta.kernel.queue.reference import Reference


class MessageCopies:
    """Sets address, routing type, transformer and duplicate id for one bridge."""

    def __init__(
        self,
        config: CoreBridgeConfig,
        own: OwnBridge | None,
        transform: Transform | None,
        node_bytes: bytes,
    ) -> None:
        self.config = config
        self.prefix = "" if own is None else own.address_prefix
        self.suffix = "" if own is None else own.address_suffix
        self.transform = transform
        self.node_bytes = node_bytes
        name = config.queue_name.encode("utf-8", "surrogatepass")
        self.queue_bytes = hashlib.blake2b(name, digest_size=8).digest()

    def target(self, message: Message) -> str:
        """Returns the forwarding address, or the message's own, with the configured prefix and suffix."""
        return self.around(self.config.forwarding_address or message.address)

    def around(self, address: str) -> str:
        return f"{self.prefix}{address}{self.suffix}"

    def forwarded(self, reference: Reference) -> Message:
        """Returns a copy under the id of the original. Exceptions of the transformer are passed on."""
        copy = reference.message.copy(reference.message.id)
        address = self.target(copy)
        if address != copy.address:
            copy.address = address
        properties = copy.properties
        properties.remove(ORIGIN)
        config = self.config
        if config.routing_type == STRIP:
            properties.remove("_AMQ_ROUTING_TYPE")
        elif config.routing_type != PASS:
            properties.put("_AMQ_ROUTING_TYPE", Byte(config.routing_type))
        if self.transform is not None:
            copy = self._transformed(copy, self.transform)
        else:
            for name, value in config.transformer_properties.items():
                properties.put(name, value)
        if config.use_duplicate_detection:
            copy.properties.put(BRIDGE_DUPLICATE, self.duplicate_id(reference))
        copy.properties_changed()
        return copy

    def _transformed(self, copy: Message, transform: Transform) -> Message:
        made = transform(copy)
        if made is None:
            return copy
        if not isinstance(made, Message):
            raise TypeError(f"the transformer returned {type(made).__name__}, no Message")
        made.large = copy.large
        return made

    def duplicate_id(self, reference: Reference) -> bytes:
        """Returns node id, message id and queue name; the original ones if the message has moved (bridge_origin.py).

        Artemis leaves the queue out. Artemis thus loses all but one copy of a multicast message whose queues are
        bridged to one address.
        """
        origin = origin_of(reference.message)
        if origin is None:
            origin = self.node_bytes + int(reference.message.id).to_bytes(8, "big", signed=True)
        return origin + self.queue_bytes
