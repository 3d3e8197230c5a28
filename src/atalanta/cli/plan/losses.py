"""The losses with each host, and with each folder that several nodes share, as `atalanta plan` shows it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from atalanta.cli.output import plain
from atalanta.cli.plan.pairs import FilePairs
from atalanta.config import Configuration
from atalanta.config.checks import (
    NOT_DURABLE,
    SharedStorePair,
    folder_loss,
    host_of,
    loss_of,
    same_host,
)


@dataclass(frozen=True)
class Loss:
    """The loss of `what`, a host or a folder, for one node, pair or group.

    `gone` are its nodes, and servers of its manager, that end. `then` says who serves, `lost` which of its messages
    are lost, `manager` what is left of the manager, "" if nothing of it is gone. `stops`: nobody serves.
    """

    what: str
    gone: list[str]
    then: str
    lost: str
    manager: str = ""
    stops: bool = False


def losses_of(pairs: FilePairs) -> list[Loss]:
    """Returns the losses by host, then by folder. Empty if no node backs up another one."""
    if not any(each.waiting for each in pairs.backings()):
        return []
    found: list[Loss] = []
    for host in _hosts(pairs):
        found += _with_host(pairs, host)
    for pair in pairs.pairs:
        active, *_ = members = pairs.members[pair.folder]
        then = f"{active} stops, and no other can take over"
        lost = f"{NOT_DURABLE}; the rest waits there, and is lost with its disk"
        found.append(Loss(f"folder {pair.folder}", members, then, lost, stops=True))
    for group in pairs.groups:
        loss = folder_loss(group, pairs.label)
        if loss is not None:
            gone = ["the manager of " + ", ".join(map(pairs.label, group.members))]
            found.append(Loss(f"folder {group.manager.place}", gone, loss.then, loss.lost, loss.manager))
    return found


def loss_table(losses: list[Loss]) -> Table:
    """Draws what becomes of the messages when a host or a shared folder is lost."""
    table = Table("lost", title="what is lost", title_justify="left")
    for head in ("with", "then", "messages that are lost"):
        table.add_column(head, overflow="fold")
    managers = any(loss.manager for loss in losses)
    if managers:
        table.add_column("manager", overflow="fold")
    before = ""
    for loss in losses:
        cells = ["" if loss.what == before else loss.what, ", ".join(loss.gone), loss.then, loss.lost]
        before = loss.what
        row = [Text(plain(cell)) for cell in (*cells, loss.manager)[: 5 if managers else 4]]
        row[2].stylize("yellow" if loss.stops else "")
        table.add_row(*row)
    return table


def _hosts(pairs: FilePairs) -> list[str]:
    """Returns the hosts of nodes and of managers, each once."""
    found: list[str] = []
    hosts = [host_of(configuration, f"of {configuration.path}") for configuration in pairs.nodes.values()]
    for host in [*hosts, *(host for group in pairs.groups for host in group.manager.hosts())]:
        if not any(same_host(host, each) for each in found):
            found.append(host)
    return found


def _with_host(pairs: FilePairs, host: str) -> list[Loss]:
    """Returns a loss for each node, pair and group of which something is on `host`."""
    what = f"host {host}"
    gone = [label for label, each in pairs.nodes.items() if same_host(host_of(each, f"of {each.path}"), host)]
    found: list[Loss] = []
    grouped = [label for each in pairs.backings() for label in (each.serves, *each.waiting)]
    for pair in pairs.pairs:
        if any(label in gone for label in pairs.members[pair.folder]):
            found.append(_of_pair(what, pair, pairs.members[pair.folder], gone))
    for group in pairs.groups:
        loss = loss_of(group, host, pairs.label)
        if loss.gone:
            found.append(Loss(what, loss.gone, loss.then, loss.lost, loss.manager, loss.stops))
    found += [_of_node(what, label, pairs.nodes[label]) for label in gone if label not in grouped]
    return found


def _of_node(what: str, label: str, configuration: Configuration) -> Loss:
    if not configuration.broker.persistence_enabled:
        return Loss(what, [label], f"{label} stops", "all of its messages", stops=True)
    lost = f"{NOT_DURABLE}; the rest waits for its return, and is lost with its disk"
    return Loss(what, [label], f"{label} stops", lost, stops=True)


def _of_pair(what: str, pair: SharedStorePair, members: list[str], gone: list[str]) -> Loss:
    left = [each for each in members if each not in gone]
    ended = [each for each in members if each in gone]
    if not left:
        lost = f"{NOT_DURABLE}; the rest waits in {pair.folder}"
        return Loss(what, ended, "the whole pair is gone", lost, stops=True)
    if members[0] not in gone:
        return Loss(what, ended, f"{left[0]} serves, with a backup less", "nothing")
    after_s = max(each.ha.lease_ms for each in pair.nodes) / 1000
    return Loss(what, ended, f"{left[0]} takes over after about {after_s:g} s", NOT_DURABLE)
