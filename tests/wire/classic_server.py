"""A server with CORE, OpenWire and STOMP whose users and permissions are those of an activemq.xml."""

from __future__ import annotations

from pathlib import Path

from atalanta.config.users.users import read_security
from atalanta.kernel.settings.effective_settings import settings_repository
from tests.config.activemq.classic_files import classic_file, read
from tests.wire.openwire.server.openwire_rig import OpenWireServer
from tests.wire.stomp.stomp_rig import StompClient, StompServer

# As the documentation of ActiveMQ has it, without rights on temporary destinations.
ENTRIES = """
  <authorizationEntry queue=">" read="admins" write="admins" admin="admins"/>
  <authorizationEntry topic=">" read="admins" write="admins" admin="admins"/>
  <authorizationEntry queue="app.>" read="users" write="users" admin="users"/>
"""
# All of the usual file but this line lets every client hear of everything.
EVERYBODYS_ADVISORIES = '<authorizationEntry topic="ActiveMQ.Advisory.>" read="*" write="*" admin="*"/>'
USERS = ("admin:admins", "anna:users", "bob:users", "tom:temps", "none:")


class ThreeProtocols(OpenWireServer, StompServer):
    """One acceptor with all three. The password of a user is its name."""

    def stomp_user(self, user: str) -> StompClient:
        return self.stomp_client(login=user, passcode=user)


def classic_server(folder: Path, entries: str = ENTRIES, temporary: str = "") -> ThreeProtocols:
    """`temporary`: the attributes of a tempDestinationAuthorizationEntry, "" for a file without one."""
    users = ""
    for each in USERS:
        name, _, groups = each.partition(":")
        users += f'<authenticationUser username="{name}" password="{name}" groups="{groups}"/>'
    entry = ""
    if temporary:
        inner = f"<tempDestinationAuthorizationEntry {temporary}/>"
        entry = f"<tempDestinationAuthorizationEntry>{inner}</tempDestinationAuthorizationEntry>"
    file = classic_file(
        folder,
        f"<plugins><simpleAuthenticationPlugin><users>{users}</users></simpleAuthenticationPlugin>"
        "<authorizationPlugin><map><authorizationMap>"
        f"<authorizationEntries>{entries}</authorizationEntries>{entry}"
        "</authorizationMap></map></authorizationPlugin></plugins>",
    )
    configuration = read(file)
    return ThreeProtocols(
        configuration.broker,
        settings_repository(configuration.broker),
        security=read_security(configuration),
    )
