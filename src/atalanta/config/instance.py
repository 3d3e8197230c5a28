"""The files of a new instance, as `atalanta create` writes them. Artemis can read them too."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from atalanta.cluster.config import LOAD_BALANCING
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.native.toml_file import NAME as OWN_FILE
from atalanta.config.problems import ConfigError
from atalanta.config.users.users import ROLES_FILE, USERS_FILE
from atalanta.config.xml.properties import property_line

PERMISSIONS: Final = (
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


class InstanceError(Exception):
    """The instance cannot be created; the text gives the reason."""


class FolderError(InstanceError):
    """The folder exists already, or cannot be created."""


@dataclass
class Instance:
    """The options of a new instance. `stored_password` is a hash or plain; `members` are URLs of other nodes."""

    name: str
    host: str
    port: int
    user: str
    stored_password: str
    role: str = "amq"
    clustered: bool = False
    cluster_user: str = ""
    cluster_password: str = ""
    group: str = "231.7.7.7:9876"
    members: list[str] = field(default_factory=list)
    load_balancing: str = "ON_DEMAND"
    queues: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    auto_create: bool = True
    auto_delete: bool = False
    persistence: bool = True
    security: bool = True
    full_policy: str = "PAGE"
    role_in_group: str = ""  # "primary" or "backup" of a replicated group with `members`, or of a shared store
    shared_store: bool = False
    data: str = "data"  # folder of journal, page files and large messages; relative to the instance
    failover_on_shutdown: bool = False  # of a shared store
    voters: list[str] = field(default_factory=list)  # of that group; host:port


def create_instance(folder: Path, instance: Instance) -> None:
    """Creates `folder` completely, or not at all. InstanceError, also for values that broker.xml cannot hold."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError(f"{folder} exists and is not empty")
    _check(instance)
    fresh = folder.with_name(f"{folder.name}.new-{os.getpid()}")
    try:
        etc = fresh / "etc"
        etc.mkdir(parents=True, mode=0o750)
        _write(etc / "broker.xml", broker_xml(instance))
        _write(etc / OWN_FILE, own_text(instance))
        _write(etc / USERS_FILE, property_line(instance.user, instance.stored_password) + "\n")
        _write(etc / ROLES_FILE, property_line(instance.role, instance.user) + "\n")
        read_broker_xml(etc / "broker.xml")
        if folder.exists():
            folder.rmdir()
        fresh.rename(folder)
    except ConfigError as error:
        raise InstanceError("\n".join(problem.text for problem in error.problems)) from error
    except OSError as error:
        raise FolderError(f"{folder} cannot be created: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def own_text(instance: Instance) -> str:
    """Returns the text of etc/atalanta.toml, which Artemis does not look at."""
    text = "# The console may change bridges, groups, acceptors and the like.\nconfiguration-changes = true\n"
    if instance.voters:
        text += f'\n[ha.manager]\nkind = "quorum"\nvoters = "{",".join(instance.voters)}"\n'
    return text


def _check(instance: Instance) -> None:
    for what, text in (("name", instance.name), ("user", instance.user), ("role", instance.role)):
        if not text or text != text.strip() or not text.isprintable():
            raise InstanceError(f"'{text}' cannot be a {what}")
    if "," in instance.user or "," in instance.role:
        raise InstanceError("users and roles have no commas in their names")
    if not 1 <= instance.port <= 65535:
        raise InstanceError(f"port {instance.port} is not between 1 and 65535")
    if instance.load_balancing not in LOAD_BALANCING:
        known = ", ".join(LOAD_BALANCING)
        raise InstanceError(f"'{instance.load_balancing}' is none of {known}")
    replicated = bool(instance.role_in_group) and not instance.shared_store
    if replicated and not instance.members:
        raise InstanceError("the members of a replicated group name each other: give the others, with --static-cluster")
    if instance.role_in_group and not instance.persistence:
        raise InstanceError("a node with a backup has its messages on disk")
    if replicated and not instance.voters and len(instance.members) > 1:
        raise InstanceError("a replicated group of more than two members needs --voters (atalanta ha witness)")
    if instance.voters and not replicated:
        raise InstanceError("only a member of a replicated group has voters: give --replicated, too")
    if instance.shared_store and not instance.members:
        raise InstanceError("primary and backup name each other: give the other one, with --static-cluster")
    if instance.shared_store and not Path(instance.data).is_absolute():
        raise InstanceError("primary and backup have their messages in one folder: give its path, with --data")
    if instance.failover_on_shutdown and not instance.shared_store:
        raise InstanceError("--failover-on-shutdown is of a shared store: a replicated group hands over at every stop")
    for voter in instance.voters:
        if not voter.rpartition(":")[2].isdecimal() or '"' in voter or not voter.isprintable():
            raise InstanceError(f"'{voter}' is not host:port of a voter")
    if instance.clustered and instance.host in ("0.0.0.0", "::", "[::]"):
        raise InstanceError(
            f"{instance.host} cannot be announced to a cluster: give --host the name or address by "
            "which the other nodes and the clients reach this one"
        )


def _write(path: Path, text: str) -> None:
    """Writes a file that only its owner can read, since it holds passwords."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(text)


def broker_xml(instance: Instance) -> str:
    """Returns the text of etc/broker.xml."""
    host = f"[{instance.host}]" if ":" in instance.host else instance.host
    url = escape(f"tcp://{host}:{instance.port}")
    data = escape(instance.data.rstrip("/"))
    # Without the element it would be below the instance, where the other process does not look.
    large = f"\n    <large-messages-directory>{data}/large-messages</large-messages-directory>"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>{escape(instance.name)}</name>
    <persistence-enabled>{_bool_text(instance.persistence)}</persistence-enabled>
    <security-enabled>{_bool_text(instance.security)}</security-enabled>
    <journal-directory>{data}/journal</journal-directory>
    <bindings-directory>{data}/bindings</bindings-directory>
    <paging-directory>{data}/paging</paging-directory>
    <journal-file-size>10M</journal-file-size>{"" if instance.data == "data" else large}

{_connectors(instance, url)}
    <acceptors>
      <acceptor name="artemis">{url}?protocols=CORE,OPENWIRE,STOMP</acceptor>
    </acceptors>
{_credentials(instance)}{_cluster(instance)}{_policy(instance)}
    <security-settings>
      <security-setting match="#">
{_permissions(instance.role)}
      </security-setting>
    </security-settings>

    <address-settings>
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address>
        <expiry-address>ExpiryQueue</expiry-address>
        <redistribution-delay>{1000 if instance.clustered else -1}</redistribution-delay>
        <max-size-bytes>-1</max-size-bytes>
        <address-full-policy>{instance.full_policy}</address-full-policy>
        <auto-create-queues>{_bool_text(instance.auto_create)}</auto-create-queues>
        <auto-create-addresses>{_bool_text(instance.auto_create)}</auto-create-addresses>
        <auto-delete-queues>{_bool_text(instance.auto_delete)}</auto-delete-queues>
        <auto-delete-addresses>{_bool_text(instance.auto_delete)}</auto-delete-addresses>
      </address-setting>
    </address-settings>

    <addresses>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
      <address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address>
{_addresses(instance)}    </addresses>
  </core>
</configuration>
"""


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def _permissions(role: str) -> str:
    roles = quoteattr(role)
    return "\n".join(f'        <permission type="{name}" roles={roles}/>' for name in PERMISSIONS)


def _connectors(instance: Instance, url: str) -> str:
    lines = [f'      <connector name="self">{url}</connector>']
    for number, member in enumerate(instance.members, 1):
        lines.append(f'      <connector name="member-{number}">{escape(member)}</connector>')
    return "\n".join(["    <connectors>", *lines, "    </connectors>"])


def _credentials(instance: Instance) -> str:
    """Returns the elements of the cluster user. A node that is alone has them, too: the defaults are public."""
    return f"""
    <cluster-user>{escape(instance.cluster_user)}</cluster-user>
    <cluster-password>{escape(instance.cluster_password)}</cluster-password>
"""


def _cluster(instance: Instance) -> str:
    if not instance.clustered:
        return ""
    groups = ""
    if instance.members:
        references = "".join(
            f"          <connector-ref>member-{number}</connector-ref>\n"
            for number in range(1, len(instance.members) + 1)
        )
        found = f"        <static-connectors>\n{references}        </static-connectors>"
    else:
        address, _, port = instance.group.rpartition(":")
        where = (
            f"<group-address>{escape(address)}</group-address>"
            f"<group-port>{escape(port)}</group-port>"
        )
        groups = f"""    <broadcast-groups>
      <broadcast-group name="announce">
        {where}
        <connector-ref>self</connector-ref>
      </broadcast-group>
    </broadcast-groups>
    <discovery-groups>
      <discovery-group name="discover">
        {where}
      </discovery-group>
    </discovery-groups>
"""
        found = '        <discovery-group-ref discovery-group-name="discover"/>'
    return f"""{groups}    <cluster-connections>
      <cluster-connection name="cluster">
        <connector-ref>self</connector-ref>
        <message-load-balancing>{instance.load_balancing}</message-load-balancing>
        <max-hops>1</max-hops>
{found}
      </cluster-connection>
    </cluster-connections>
"""


def _policy(instance: Instance) -> str:
    role = instance.role_in_group
    if not role:
        return ""
    form = "shared-store" if instance.shared_store else "replication"
    options = "<failover-on-shutdown>true</failover-on-shutdown>" if instance.failover_on_shutdown else ""
    element = f"<{role}>{options}</{role}>" if options else f"<{role}/>"
    return f"""
    <ha-policy>
      <{form}>
        {element}
      </{form}>
    </ha-policy>
"""


def _addresses(instance: Instance) -> str:
    """Returns the elements of `name` or `name:routing type` arguments, as `artemis create` takes them. The default
    is anycast."""
    lines = []
    for text in instance.queues:
        name, routing = _routed(text, "anycast")
        quoted = quoteattr(name)
        queue = f"<{routing}><queue name={quoted}/></{routing}>"
        lines.append(f"      <address name={quoted}>{queue}</address>\n")
    for text in instance.addresses:
        name, routing = _routed(text, "multicast")
        lines.append(f"      <address name={quoteattr(name)}><{routing}/></address>\n")
    return "".join(lines)


def _routed(text: str, default: str) -> tuple[str, str]:
    name, colon, routing = text.strip().rpartition(":")
    if not colon:
        name, routing = routing, default
    if not name or routing not in ("anycast", "multicast"):
        raise InstanceError(f"'{text}' is not of the form name, name:anycast or name:multicast")
    return name, routing
