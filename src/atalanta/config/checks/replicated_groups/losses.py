"""The state of a replicated group after the loss of a host: who serves, what is lost, whether the manager answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from atalanta.config.checks.reachability import host_of, same_host
from atalanta.config.checks.replicated_groups.group import ReplicatedGroup
from atalanta.config.checks.replicated_groups.manager import FILE, GroupManager
from atalanta.config.configuration import Configuration

NOT_DURABLE: Final = "those that are not durable"
Label = Callable[[Configuration], str]


@dataclass(frozen=True)
class GroupLoss:
    """The loss of `gone`, labels of members and names of the manager's servers, when the first member is active.

    `stops`: nothing is confirmed until somebody acts, or something is back. `manager` is "" if nothing of it is gone.
    """

    gone: list[str]
    stops: bool
    then: str
    lost: str
    manager: str


def _place(configuration: Configuration) -> str:
    """Returns what stands for the host of a node that names only "every address"."""
    return f"of {configuration.path}"


def hosts_of(group: ReplicatedGroup) -> list[str]:
    """Returns the hosts of members and of the manager's servers, each once."""
    found = [host_of(each, _place(each)) for each in group.members]
    for host in group.manager.hosts():
        if not any(same_host(host, each) for each in found):
            found.append(host)
    return list(dict.fromkeys(found))


def members_on(group: ReplicatedGroup, host: str) -> list[Configuration]:
    """Returns the members on `host`."""
    return [each for each in group.members if same_host(host_of(each, _place(each)), host)]


def loss_of(group: ReplicatedGroup, host: str, label: Label) -> GroupLoss:
    """Returns what becomes of the group when everything on `host` is gone."""
    gone = members_on(group, host)
    servers = group.manager.servers_on(host)
    answers, manager = _manager_after(group.manager, gone, servers)
    names = [*map(label, gone), *(f"{group.manager.word} {each}" for each in servers)]
    stops, then, lost = _after(group, gone, answers, label)
    return GroupLoss(names, stops, then, lost, manager)


def folder_loss(group: ReplicatedGroup, label: Label) -> GroupLoss | None:
    """Returns what becomes of the group without the folder of its manager; None if that is no folder of its own."""
    manager = group.manager
    if manager.kind != FILE or manager.lies_with(group.members):
        return None
    _, then, lost = _after(group, [], False, label)
    return GroupLoss([], False, then, lost, "gone")


def _manager_after(
    manager: GroupManager, gone: list[Configuration], servers: list[str]
) -> tuple[bool, str]:
    """Returns whether the manager answers, and what is left of it."""
    if manager.kind == FILE:
        lost = manager.lies_with(gone)
        return not lost, "gone: its folder is on that host" if lost else ""
    count, left = len(manager.servers), len(manager.servers) - len(servers)
    if not servers:
        return True, ""
    answers = left >= manager.needed
    verdict = "a majority" if answers else "no majority"
    return answers, f"{left} of {count} {manager.word}s left: {verdict}" if left else "gone"


def _after(
    group: ReplicatedGroup, gone: list[Configuration], answers: bool, label: Label
) -> tuple[bool, str, str]:
    """Returns whether the group stops, and two sentences: who serves, and what is lost."""
    active = group.members[0]
    left = [each for each in group.required if each not in gone]
    copies = [label(each) for each in group.members if each.ha.asynchronous and each not in gone]
    if not left and copies:
        names = ", ".join(copies)
        then = f"the group stops: only {names} is left, which serves at an operator's order"
        return True, then, f"{NOT_DURABLE}; of the rest what {names} did not have yet, if the others are lost"
    if not left:
        then = "the group stops: all its members are gone"
        return True, then, f"{NOT_DURABLE}; the rest waits on their disks, and is lost with them"
    if active in gone:
        successor = label(left[0])
        if not answers:
            lost = f"{NOT_DURABLE}; the rest waits until {label(active)} or the manager is back"
            return True, f"the group stops: {successor} cannot take over without the manager", lost
        if len(left) < left[0].ha.min_in_sync:
            return True, f"{successor} takes over, and confirms nothing: {_too_few(left)}", NOT_DURABLE
        return False, f"{successor} takes over after about {group.lease_s:g} s", NOT_DURABLE
    lost_copies = [label(each) for each in gone if each.ha.asynchronous]
    gone = [each for each in gone if not each.ha.asynchronous]
    if lost_copies and not gone and answers:
        return False, f"{label(active)} goes on, without the copy of {', '.join(lost_copies)}", "nothing"
    if not gone:
        more = "" if answers else "; without the manager no member can take over, and none can be removed"
        return False, f"{label(active)} goes on{more}", "nothing"
    missing = ", ".join(map(label, gone))
    if not answers:
        why = f"because it cannot remove {missing} without the manager"
        then = f"the group stops: {label(active)} confirms nothing, {why}"
        return True, then, "nothing"
    if len(left) < active.ha.min_in_sync:
        return True, f"{label(active)} confirms nothing: {_too_few(left)}", "nothing"
    others = len(left) - 1
    replicas = f"with {others} of {len(group.required) - 1} replicas" if others else "without a replica"
    return False, f"{label(active)} goes on, {replicas}", "nothing"


def _too_few(left: list[Configuration]) -> str:
    return f"min_in_sync is {left[0].ha.min_in_sync}, and {len(left)} {'is' if len(left) == 1 else 'are'} left"
