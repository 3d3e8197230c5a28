"""`atalanta queue`: its arguments. The work is in cli/admin/queues.py, by management messages to any CORE broker."""

from __future__ import annotations

from typing import Annotated

import typer

from atalanta.cli.options import DEFAULT_URL, STATUSES, Json, Password, Selector, Url, User, Yes

application = typer.Typer(
    help="Queues of a broker: show, create, delete, purge, pause, resume, move, retry, end a lease.",
    no_args_is_help=True,
    epilog=STATUSES,
)

Name = Annotated[str, typer.Argument(help="the queue's name", show_default=False)]
Part = Annotated[
    str | None, typer.Argument(help="only queues with this in their name", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="also the broker's internal queues")]
Cluster = Annotated[
    bool, typer.Option("--cluster", help="of all nodes of the cluster: their sums, and at each node")
]
Address = Annotated[str | None, typer.Option(help="the address  [default: the queue's name]")]
Multicast = Annotated[
    bool, typer.Option("--multicast/--anycast", help="a copy for each queue of the address, or one")
]
NonDurable = Annotated[bool, typer.Option("--non-durable", help="not durable: deleted by a restart")]
MaxConsumers = Annotated[int, typer.Option(min=-1, help="-1: any number")]
PurgeOnNoConsumers = Annotated[bool, typer.Option("--purge-on-no-consumers")]
More = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="more of the queue's configuration: exclusive=true, ring-size=10 …",
        metavar="K=V",
    ),
]
IfNotExists = Annotated[bool, typer.Option("--if-not-exists", help="no error if it exists already")]
Force = Annotated[bool, typer.Option("--force", help="also with consumers")]
WithAddress = Annotated[
    bool, typer.Option("--with-address", help="also delete its address, if it is not used otherwise")
]
Persist = Annotated[bool, typer.Option("--persist", help="stays paused after a restart")]
Count = Annotated[int, typer.Option(min=-1, help="largest number of messages; -1: all")]
To = Annotated[str, typer.Argument(help="the target queue", show_default=False)]


@application.command()
def stat(
    part: Part = None,
    all_queues: All = False,
    cluster: Cluster = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
) -> None:
    """Messages and consumers of all queues, and the lease of a Spark query.

    \b
    atalanta queue stat
    atalanta queue stat orders --json
    atalanta queue stat --cluster
    """
    from atalanta.cli.admin.queues import run_cluster_stat, run_stat

    if cluster:
        run_cluster_stat((url, user, password), part, json_output)
        return
    run_stat((url, user, password), part, all_queues, json_output)


@application.command()
def create(
    name: Name,
    address: Address = None,
    multicast: Multicast = False,
    filter_text: Annotated[str | None, typer.Option("--filter", metavar="SQL")] = None,
    non_durable: NonDurable = False,
    max_consumers: MaxConsumers = -1,
    purge_on_no_consumers: PurgeOnNoConsumers = False,
    more: More = None,
    if_not_exists: IfNotExists = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """Create a queue, and its address if needed.

    \b
    atalanta queue create archive --address flights --multicast --filter "delay > 60"
    """
    from atalanta.cli.admin.queues import run_create

    definition: dict[str, object] = {
        "name": name,
        "address": address or name,
        "routing-type": "MULTICAST" if multicast else "ANYCAST",
        "durable": not non_durable,
        "max-consumers": max_consumers,
        "purge-on-no-consumers": purge_on_no_consumers,
        "auto-create-address": True,
    }
    if filter_text is not None:
        definition["filter-string"] = filter_text
    run_create((url, user, password), definition, more or [], if_not_exists)


@application.command()
def delete(
    name: Name,
    force: Force = False,
    with_address: WithAddress = False,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """Delete a queue with the messages in it."""
    from atalanta.cli.admin.queues import run_delete

    run_delete((url, user, password), name, force, with_address, yes)


@application.command()
def purge(
    name: Name,
    selector: Selector = None,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """Remove all messages of a queue, or those a selector takes."""
    from atalanta.cli.admin.queues import run_operation
    from atalanta.cli.output.outcome import confirm, reported

    operation = ("removeMessages", selector) if selector else ("removeAllMessages",)
    chosen = f"the messages that match {selector}" if selector else "all messages"
    with reported():
        confirm(f"Remove {chosen} of queue {name}", yes)
    run_operation((url, user, password), name, "removed {} from {}", *operation)


@application.command()
def pause(
    name: Name,
    persist: Persist = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """Give out no more messages; new ones are still taken."""
    from atalanta.cli.admin.queues import run_operation

    operation = ("pause", True) if persist else ("pause",)
    run_operation((url, user, password), name, "paused {1}", *operation)


@application.command()
def resume(
    name: Name, url: Url = DEFAULT_URL, user: User = None, password: Password = None
) -> None:
    """Give messages out again."""
    from atalanta.cli.admin.queues import run_operation

    run_operation((url, user, password), name, "resumed {1}", "resume")


@application.command()
def move(
    name: Name,
    to: To,
    selector: Selector = None,
    count: Count = -1,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """Move messages to another queue.

    \b
    atalanta queue move DLQ orders --selector "_AMQ_ORIG_ADDRESS = 'orders'"
    """
    from atalanta.cli.admin.queues import run_operation

    words = "moved {} from {} to " + to.replace("{", "{{").replace("}", "}}")
    operation: tuple[object, ...] = (selector, to)
    if count >= 0:
        operation = (500, selector, to, False, count)
    run_operation((url, user, password), name, words, "moveMessages", *operation)


@application.command()
def retry(name: Name, url: Url = DEFAULT_URL, user: User = None, password: Password = None) -> None:
    """Send the messages of a dead-letter queue to where they came from."""
    from atalanta.cli.admin.queues import run_operation

    words = "sent {} of {} back where they came from"
    run_operation((url, user, password), name, words, "retryMessages")


@application.command("end-lease")
def end_lease(
    name: Name,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """End the lease of a Spark query, so that consumers or another group may have the queue.

    No message is removed. A query that still runs stops with an error that names you; stop it before, or whatever
    restarts it leases the queue again.

    \b
    atalanta queue stat orders
    atalanta queue end-lease orders
    """
    from atalanta.cli.admin.leases import run_end_lease

    run_end_lease((url, user, password), name, yes)
