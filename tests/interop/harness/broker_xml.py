"""One broker.xml for both kinds of node: what an Artemis reads, an Atalanta node must read too."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

PERMISSIONS = (
    "createNonDurableQueue",
    "deleteNonDurableQueue",
    "createDurableQueue",
    "deleteDurableQueue",
    "createAddress",
    "deleteAddress",
    "consume",
    "browse",
    "send",
    "manage",
)
# What the user of another broker of a network needs here, if its bridge is to serve everything.
NEIGHBOUR_PERMISSIONS = (
    "send",
    "consume",
    "createAddress",
    "createDurableQueue",
    "deleteDurableQueue",
    "createNonDurableQueue",
    "deleteNonDurableQueue",
)
# user -> (password, role)
USERS = {
    "admin": ("admin", "amq"),
    "guest": ("guest", "guests"),
    "neighbour": ("neighbour", "neighbours"),
}
CLUSTER_USER = "interop-cluster"
CLUSTER_PASSWORD = "interop-cluster-secret"


@dataclass(frozen=True)
class Cluster:
    """A cluster-connection: static connectors to `peers` (ports), or a UDP `group` to find them."""

    peers: tuple[int, ...] = ()
    group: tuple[str, int] | None = None
    group_interface: str = "127.0.0.1"  # address of the interface on which the group is
    stack: str = ""  # channel of a JGroups stack (stack.xml beside broker.xml), in place of a group
    load_balancing: str = "ON_DEMAND"
    max_hops: int = 1
    direct_only: bool = False
    more: str = ""  # further elements of <cluster-connection>
    address: str = ""
    others: str = ""  # further <cluster-connection>s


@dataclass(frozen=True)
class Shape:
    """What is particular about one node: texts go into its broker.xml as they are.

    `core` are elements of <core>, `settings` elements of <address-settings>, `addresses` elements of <addresses>;
    `connectors` are (name, port) of further connectors; `own` is its atalanta.toml (a real Artemis gets none).
    """

    cluster: Cluster | None = None
    redistribution_delay_ms: int = 0
    core: str = ""
    settings: str = ""
    addresses: str = ""
    connectors: tuple[tuple[str, int], ...] = ()
    own: str = ""
    acceptors: str = ""  # further <acceptor>s


def broker_xml(name: str, port: int, shape: Shape | None = None) -> str:
    """The text of a broker.xml for a node that accepts CORE on 127.0.0.1:`port`."""
    shape = shape or Shape()
    cluster = shape.cluster
    return f"""<?xml version='1.0'?>
<configuration xmlns="urn:activemq">
   <core xmlns="urn:activemq:core">
      <name>{escape(name)}</name>
      <persistence-enabled>true</persistence-enabled>
      <journal-type>NIO</journal-type>
      <paging-directory>data/paging</paging-directory>
      <bindings-directory>data/bindings</bindings-directory>
      <journal-directory>data/journal</journal-directory>
      <large-messages-directory>data/large-messages</large-messages-directory>
      <message-expiry-scan-period>200</message-expiry-scan-period>
      <address-queue-scan-period>200</address-queue-scan-period>
      <cluster-user>{CLUSTER_USER}</cluster-user>
      <cluster-password>{CLUSTER_PASSWORD}</cluster-password>
{connectors(port, shape)}
      <acceptors>
         <acceptor name="artemis">tcp://127.0.0.1:{port}?protocols=CORE</acceptor>
{shape.acceptors}
      </acceptors>
{cluster_connections(cluster)}
      <security-settings>
{_permissions("#", "amq", "amq", "neighbours")}
{_permissions("guest.#", "amq,guests", "amq,guests")}
{_permissions("readonly.#", "amq", "amq,guests")}
      </security-settings>
{_settings(shape)}
{shape.core}
      <addresses>
{shape.addresses}
         <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
         <address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address>
      </addresses>
      <diverts>
         <divert name="copying">
            <address>diverted</address>
            <forwarding-address>diverted.copy</forwarding-address>
            <routing-type>PASS</routing-type>
         </divert>
         <divert name="taking">
            <address>diverted.away</address>
            <forwarding-address>diverted.large</forwarding-address>
            <filter string="size &gt; 10"/>
            <exclusive>true</exclusive>
            <routing-type>ANYCAST</routing-type>
         </divert>
         <divert name="sorting">
            <address>diverted.kinds</address>
            <forwarding-address>diverted.late</forwarding-address>
            <filter string="kind = 'late'"/>
            <exclusive>true</exclusive>
            <routing-type>PASS</routing-type>
         </divert>
      </diverts>
   </core>
</configuration>
"""


def users_properties() -> str:
    """artemis-users.properties, passwords in clear."""
    return "".join(f"{user} = {password}\n" for user, (password, _) in USERS.items())


def roles_properties() -> str:
    """artemis-roles.properties."""
    return "".join(f"{role} = {user}\n" for user, (_, role) in USERS.items())


def _settings(shape: Shape) -> str:
    return f"""      <address-settings>
         <address-setting match="#">
            <dead-letter-address>DLQ</dead-letter-address>
            <expiry-address>ExpiryQueue</expiry-address>
            <max-delivery-attempts>10</max-delivery-attempts>
            <redistribution-delay>{shape.redistribution_delay_ms}</redistribution-delay>
            <auto-create-queues>true</auto-create-queues>
            <auto-create-addresses>true</auto-create-addresses>
            <auto-delete-queues>false</auto-delete-queues>
            <auto-delete-addresses>false</auto-delete-addresses>
         </address-setting>
         <address-setting match="redeliver.#">
            <max-delivery-attempts>3</max-delivery-attempts>
         </address-setting>
{_timing()}
{_full()}
{_no_auto_create()}
         <address-setting match="autodel.#">
            <auto-delete-queues>true</auto-delete-queues>
            <auto-delete-addresses>true</auto-delete-addresses>
         </address-setting>
{shape.settings}
      </address-settings>"""


def _timing() -> str:
    return """         <address-setting match="delayed.#">
            <redelivery-delay>400</redelivery-delay>
            <redelivery-delay-multiplier>2</redelivery-delay-multiplier>
            <max-delivery-attempts>3</max-delivery-attempts>
            <dead-letter-address>Dead</dead-letter-address>
            <auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>
         </address-setting>
         <address-setting match="expiring.#">
            <expiry-delay>200</expiry-delay>
            <expiry-address>Expired</expiry-address>
            <auto-create-expiry-resources>true</auto-create-expiry-resources>
         </address-setting>
         <address-setting match="bounded.#">
            <min-expiry-delay>20000</min-expiry-delay>
            <max-expiry-delay>60000</max-expiry-delay>
         </address-setting>
         <address-setting match="immortal.#">
            <no-expiry>true</no-expiry>
         </address-setting>
         <address-setting match="unheard.#">
            <send-to-dla-on-no-route>true</send-to-dla-on-no-route>
         </address-setting>
         <address-setting match="Dead">
            <default-queue-routing-type>ANYCAST</default-queue-routing-type>
         </address-setting>
         <address-setting match="Expired">
            <default-queue-routing-type>ANYCAST</default-queue-routing-type>
         </address-setting>"""


def _full() -> str:
    pages = "<page-size-bytes>50K</page-size-bytes><max-read-page-bytes>20M</max-read-page-bytes>"
    return "\n".join(
        f"""         <address-setting match="{match}.#">
            <max-size-bytes>{size}</max-size-bytes>
            <address-full-policy>{policy}</address-full-policy>
            {pages if policy == "PAGE" else ""}
         </address-setting>"""
        for match, policy, size in (
            ("blocking", "BLOCK", "100K"),
            ("roomy", "BLOCK", "10M"),
            ("failing", "FAIL", "100K"),
            ("dropping", "DROP", "100K"),
            ("paging", "PAGE", "200K"),
        )
    )


def _no_auto_create() -> str:
    # The JMS client asks for the name with the prefix of old versions when a queue is not there.
    return "\n".join(
        f"""         <address-setting match="{prefix}nocreate.#">
            <auto-create-queues>false</auto-create-queues>
            <auto-create-addresses>false</auto-create-addresses>
         </address-setting>"""
        for prefix in ("", "jms.queue.", "jms.topic.")
    )


def _permissions(match: str, writers: str, readers: str, neighbours: str = "") -> str:
    lines = [f'         <security-setting match="{match}">']
    for permission in PERMISSIONS:
        roles = readers if permission in ("consume", "browse") else writers
        if neighbours and permission in NEIGHBOUR_PERMISSIONS:
            roles = f"{roles},{neighbours}"
        lines.append(f'            <permission type="{permission}" roles="{roles}"/>')
    return "\n".join([*lines, "         </security-setting>"])


def connectors(port: int, shape: Shape) -> str:
    """Returns the connectors of a node: itself, its peers, and those of the shape."""
    if shape.cluster is None and not shape.connectors:
        return ""
    lines = ["      <connectors>"]
    lines.append(f'         <connector name="self">tcp://127.0.0.1:{port}</connector>')
    peers = shape.cluster.peers if shape.cluster is not None else ()
    for name, other in (*((f"peer-{peer}", peer) for peer in peers), *shape.connectors):
        lines.append(f'         <connector name="{name}">tcp://127.0.0.1:{other}</connector>')
    return "\n".join([*lines, "      </connectors>"])


def cluster_connections(cluster: Cluster | None) -> str:
    """Returns the cluster-connection of a node, with the groups that it needs."""
    if cluster is None:
        return ""
    groups = ""
    only = ' allow-direct-connections-only="true"' if cluster.direct_only else ""
    members = f"            <static-connectors{only}>\n"
    # The schema wants one at least; one's own is left out by either kind of broker.
    for reference in [f"peer-{peer}" for peer in cluster.peers] or ["self"]:
        members += f"               <connector-ref>{reference}</connector-ref>\n"
    members += "            </static-connectors>"
    where = ""
    if cluster.stack:
        where = f"<jgroups-file>stack.xml</jgroups-file><jgroups-channel>{cluster.stack}</jgroups-channel>"
    elif cluster.group is not None:
        address, port = cluster.group
        where = f"""            <local-bind-address>{cluster.group_interface}</local-bind-address>
            <group-address>{address}</group-address>
            <group-port>{port}</group-port>"""
    if where:
        period = f"            <broadcast-period>{2000 if cluster.stack else 500}</broadcast-period>"
        # The schema wants these in this order.
        first, second = (period, where) if cluster.stack else (where, period)
        groups = f"""      <broadcast-groups>
         <broadcast-group name="announce">
{first}
{second}
            <connector-ref>self</connector-ref>
         </broadcast-group>
      </broadcast-groups>
      <discovery-groups>
         <discovery-group name="discover">
{where}
            <refresh-timeout>{10_000 if cluster.stack else 5000}</refresh-timeout>
         </discovery-group>
      </discovery-groups>
"""
        members = '            <discovery-group-ref discovery-group-name="discover"/>'
    return f"""{groups}      <cluster-connections>
         <cluster-connection name="interop">
            <address>{cluster.address}</address>
            <connector-ref>self</connector-ref>
            <retry-interval>200</retry-interval>
            <use-duplicate-detection>true</use-duplicate-detection>
            <message-load-balancing>{cluster.load_balancing}</message-load-balancing>
            <max-hops>{cluster.max_hops}</max-hops>
{cluster.more}
{members}
         </cluster-connection>
{cluster.others}
      </cluster-connections>"""
