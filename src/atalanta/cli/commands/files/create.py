"""`atalanta create`: creates a folder with all files of a node, with generated passwords."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from atalanta.config.instance import Instance

SECRET_BYTES = 18


Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="the folder to create; must not exist yet", show_default=False)
]
Name = Annotated[str, typer.Option(help="[default: the folder's name]")]
Host = Annotated[str, typer.Option(help="address to listen on and to announce")]
DefaultPort = Annotated[int, typer.Option("--default-port", "--port")]
PortOffset = Annotated[int, typer.Option(help="added to the port")]
User = Annotated[str, typer.Option(help="the user with all permissions")]
Password = Annotated[str, typer.Option(help="[default: generated, and printed once]")]
Role = Annotated[str, typer.Option(help="that user's role")]
Clustered = Annotated[bool, typer.Option("--clustered", help="form a cluster with other nodes")]
StaticCluster = Annotated[
    str, typer.Option(help="the other nodes: tcp://host:port,tcp://host:port")
]
Group = Annotated[str, typer.Option(help="multicast group, without --static-cluster")]
ClusterUser = Annotated[str, typer.Option(help="the same on all nodes")]
ClusterPassword = Annotated[str, typer.Option(help="likewise [default: generated]")]
Replicated = Annotated[
    bool, typer.Option("--replicated", help="a member of a replicated group with the nodes of --static-cluster")
]
SharedStore = Annotated[
    bool, typer.Option("--shared-store", help="one of a pair that has the folder --data in common")
]
Backup = Annotated[bool, typer.Option("--backup", "--slave", help="of --replicated or --shared-store: this one waits")]
FailoverOnShutdown = Annotated[
    bool, typer.Option("--failover-on-shutdown", help="with --shared-store: the other one serves after a graceful stop")
]
Data = Annotated[str, typer.Option(help="folder of the messages [default: data, in DIR]", show_default=False)]
Voters = Annotated[
    str, typer.Option(help="with --replicated: host:port,host:port of `atalanta ha witness`, the same for all members")
]
MessageLoadBalancing = Annotated[str, typer.Option()]
Queues = Annotated[str, typer.Option(help="name,name:multicast")]
Addresses = Annotated[str, typer.Option(help="name,name:anycast")]
Autodelete = Annotated[bool, typer.Option("--autodelete")]
Blocking = Annotated[
    bool, typer.Option("--blocking", help="a full address blocks instead of paging")
]
NoAutocreate = Annotated[bool, typer.Option("--no-autocreate")]
NoPersistence = Annotated[
    bool, typer.Option("--no-persistence", "--disable-persistence", help="all in memory")
]
NoSecurity = Annotated[bool, typer.Option("--no-security", help="give every client all permissions")]


def create(
    folder: Folder,
    name: Name = "",
    host: Host = "127.0.0.1",
    default_port: DefaultPort = 61616,
    port_offset: PortOffset = 0,
    user: User = "admin",
    password: Password = "",
    role: Role = "amq",
    clustered: Clustered = False,
    static_cluster: StaticCluster = "",
    group: Group = "231.7.7.7:9876",
    cluster_user: ClusterUser = "cluster",
    cluster_password: ClusterPassword = "",
    replicated: Replicated = False,
    shared_store: SharedStore = False,
    backup: Backup = False,
    failover_on_shutdown: FailoverOnShutdown = False,
    data: Data = "data",
    voters: Voters = "",
    message_load_balancing: MessageLoadBalancing = "ON_DEMAND",
    queues: Queues = "",
    addresses: Addresses = "",
    autodelete: Autodelete = False,
    blocking: Blocking = False,
    no_autocreate: NoAutocreate = False,
    no_persistence: NoPersistence = False,
    no_security: NoSecurity = False,
) -> None:
    """Create a node: etc/broker.xml, users and roles. `atalanta run DIR` then starts it."""
    # Imported here: `atalanta version` must work even if a module of the broker cannot be imported.
    from atalanta.config.instance import Instance
    from atalanta.kernel.security.password import hash_password

    role_in_group = _role_in_group(replicated, shared_store, backup)
    shown = []
    if not password:
        password = secrets.token_urlsafe(SECRET_BYTES)
        shown.append(f"  password of {user}: {password}")
    clustered = clustered or bool(static_cluster)
    if clustered and not cluster_password:
        cluster_password = secrets.token_urlsafe(SECRET_BYTES)
        shown.append(f"  cluster password: {cluster_password}  (--cluster-password of other nodes)")
    instance = Instance(
        name=name or folder.resolve().name,
        host=host,
        port=default_port + port_offset,
        user=user,
        stored_password=hash_password(password, secrets.token_bytes(32)),
        role=role,
        clustered=clustered,
        cluster_user=cluster_user,
        cluster_password=cluster_password or secrets.token_urlsafe(SECRET_BYTES),
        group=group,
        members=_listed(static_cluster),
        load_balancing=message_load_balancing,
        queues=_listed(queues),
        addresses=_listed(addresses),
        auto_create=not no_autocreate,
        auto_delete=autodelete,
        persistence=not no_persistence,
        security=not no_security,
        full_policy="BLOCK" if blocking else "PAGE",
        role_in_group=role_in_group,
        shared_store=shared_store,
        data=data,
        failover_on_shutdown=failover_on_shutdown,
        voters=_listed(voters),
    )
    _make(folder, instance, shown)


def _make(folder: Path, instance: Instance, shown: list[str]) -> None:
    """Creates the folder, and says so. `shown` are passwords that were generated."""
    from atalanta.cli.output.outcome import CANNOT_WRITE, USAGE, ended
    from atalanta.config.instance import FolderError, InstanceError, create_instance

    try:
        create_instance(folder, instance)
    except InstanceError as error:
        status = CANNOT_WRITE if isinstance(error, FolderError) else USAGE
        raise ended(str(error), status) from error
    typer.echo(f"created {folder}: node {instance.name} at tcp://{instance.host}:{instance.port}")
    if shown:
        typer.echo("printed only once, keep them:")
        typer.echo("\n".join(shown))
    if instance.role_in_group and not instance.shared_store and not instance.voters:
        typer.echo("without --voters the guard of the primary decides: when its host is lost, no backup takes over")
    typer.echo(f"start it: atalanta run {folder}")


def _role_in_group(replicated: bool, shared_store: bool, backup: bool) -> str:
    """Returns "primary" or "backup", "" for a node that has none. Ends the command for options that contradict."""
    from atalanta.cli.output.outcome import USAGE, ended

    if replicated and shared_store:
        raise ended("--replicated and --shared-store: a node has one of them", USAGE)
    if not replicated and not shared_store:
        if backup:
            raise ended("--backup: of a group or a shared store, give --replicated or --shared-store, too", USAGE)
        return ""
    return "backup" if backup else "primary"


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
