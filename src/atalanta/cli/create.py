"""`atalanta create`: a folder with everything a node needs, and secrets of its own."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from atalanta.config.instance import Instance, InstanceError, create_instance
from atalanta.kernel.password import hash_password

SECRET_BYTES = 18


def create(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="made; must not exist yet", show_default=False)
    ],
    name: Annotated[str, typer.Option(help="[default: the folder's name]")] = "",
    host: Annotated[
        str, typer.Option(help="where to listen, and what to announce")
    ] = "127.0.0.1",
    default_port: Annotated[int, typer.Option("--default-port", "--port")] = 61616,
    port_offset: Annotated[int, typer.Option(help="added to the port")] = 0,
    user: Annotated[str, typer.Option(help="who may do everything")] = "admin",
    password: Annotated[str, typer.Option(help="[default: generated, and shown once]")] = "",
    role: Annotated[str, typer.Option(help="that user's role")] = "amq",
    clustered: Annotated[bool, typer.Option("--clustered", help="look for other nodes")] = False,
    static_cluster: Annotated[
        str, typer.Option(help="the other nodes: tcp://host:port,tcp://host:port")
    ] = "",
    group: Annotated[str, typer.Option(help="multicast group without them")] = "231.7.7.7:9876",
    cluster_user: Annotated[str, typer.Option(help="the same on all nodes")] = "cluster",
    cluster_password: Annotated[str, typer.Option(help="likewise [default: generated]")] = "",
    message_load_balancing: Annotated[str, typer.Option()] = "ON_DEMAND",
    queues: Annotated[str, typer.Option(help="name,name:multicast")] = "",
    addresses: Annotated[str, typer.Option(help="name,name:anycast")] = "",
    autodelete: Annotated[bool, typer.Option("--autodelete")] = False,
    blocking: Annotated[
        bool, typer.Option("--blocking", help="a full address blocks instead of paging")
    ] = False,
    no_autocreate: Annotated[bool, typer.Option("--no-autocreate")] = False,
    no_persistence: Annotated[
        bool, typer.Option("--no-persistence", "--disable-persistence", help="all in memory")
    ] = False,
    no_security: Annotated[
        bool, typer.Option("--no-security", help="let everybody do everything")
    ] = False,
) -> None:
    """Create a node: etc/broker.xml, users and roles. `atalanta run DIR` then starts it."""
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
        cluster_password=cluster_password,
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
    )
    try:
        create_instance(folder, instance)
    except InstanceError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    typer.echo(f"created {folder}: node {instance.name} at tcp://{host}:{instance.port}")
    if shown:
        typer.echo("shown only now, keep them:")
        typer.echo("\n".join(shown))
    typer.echo(f"start it: atalanta run {folder}")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
