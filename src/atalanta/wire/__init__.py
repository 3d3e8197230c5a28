"""Wire protocols, one folder each, and the seam that they plug into: sniffer, protocol, connection, host."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
    from atalanta.wire.http_upgrade import UPGRADE_ENABLED, UPGRADE_ENDPOINT, UPGRADE_SERVER_NAME
    from atalanta.wire.jgroups_discovery import STACK_KINDS, JgroupsStack
    from atalanta.wire.uri import uri_text
else:
    __getattr__ = face(__name__)

__all__ = [
    "STACK_KINDS", "UPGRADE_ENABLED", "UPGRADE_ENDPOINT", "UPGRADE_SERVER_NAME", "AcceptorConfig",
    "ConnectorConfig", "JgroupsStack", "uri_text",
]
