"""Findings about what a node knows of itself: its disk, its memory, and addresses that are full, blocked or paused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from atalanta.survey.findings.cluster_finding import ERROR, NOTE, WARNING, ClusterFinding
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.health import AlarmView
from atalanta.survey.texts import bytes_text, counted, messages

NEAR_PERCENT: Final = 5
MORE_ROOM: Final = "extend the disk, or free room on it beside the broker's folders; the node goes on by itself"


def alarm_findings(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    for node in cluster.nodes:
        for alarm in node.alarms:
            yield finding_of(node, alarm)
        yield from nearly_full(node)
        yield from paused_queues(node)


def finding_of(node: NodeView, alarm: AlarmView) -> ClusterFinding:
    """Returns the finding of an alarm; one of a later release, which this program does not know, is a warning."""
    severity, text, remedy = TEXTS.get(alarm.name, _unknown)(alarm)
    facts = {**alarm.facts, "address": alarm.address} if alarm.address else dict(alarm.facts)
    return ClusterFinding(severity, alarm.name, node.label, text, remedy, facts)


def nearly_full(node: NodeView) -> Iterator[ClusterFinding]:
    """Finds a disk that is close to max-disk-usage, before senders wait."""
    used, limit = node.disk_used_percent, node.disk_limit_percent
    if used is not None and limit is not None and 0 < limit and limit - NEAR_PERCENT <= used <= limit:
        text = f"the disk is {used:.1f} % full; at {limit} % (max-disk-usage) all senders wait"
        yield ClusterFinding(WARNING, "disk_nearly_full", node.label, text, MORE_ROOM, {"used_percent": used})


def paused_queues(node: NodeView) -> Iterator[ClusterFinding]:
    """Finds queues that give out nothing, because they are paused or disabled. A paused address is an alarm."""
    paused = {alarm.address for alarm in node.alarms if alarm.name == "address_paused"}
    for queue in node.queues.values():
        if queue.internal or not (queue.paused or not queue.enabled) or queue.address in paused:
            continue
        what = "paused" if queue.paused else "disabled"
        enabled = f'<queue name="{queue.name}" enabled="true"/>'
        remedy = f"atalanta queue resume {queue.name}" if queue.paused else enabled
        count = queue.now.messages
        text = f"queue {queue.name} is {what}: {messages(count)} in it" + (" wait" if count != 1 else " waits")
        if count == 0:
            text = f"queue {queue.name} is {what}"
        facts: dict[str, object] = {"queue": queue.name, "messages": count}
        yield ClusterFinding(WARNING, f"queue_{what}", node.label, text, remedy, facts)


# -- one alarm: its severity, text and remedy -------------------------------------------------------
Shown = tuple[str, str, str]


def _disk_exhausted(alarm: AlarmView) -> Shown:
    return ERROR, "the disk has no room for a new file: messages are refused", MORE_ROOM


def _disk_full(alarm: AlarmView) -> Shown:
    if "minDiskFree" in alarm.facts:
        limit = f"min-disk-free is {bytes_text(alarm.number('minDiskFree'))}"
    else:
        limit = f"max-disk-usage is {alarm.facts.get('maxDiskUsage')} %"
    return ERROR, f"the disk is {alarm.facts.get('usedPercent')} % full ({limit}): all senders wait", MORE_ROOM


def _disk_behind(alarm: AlarmView) -> Shown:
    return WARNING, "many pages wait for the disk: all senders wait until they are written", "is the disk fast enough?"


def _memory_full(alarm: AlarmView) -> Shown:
    used = f"{bytes_text(alarm.number('usedBytes'))} of {bytes_text(alarm.number('limitBytes'))}"
    if "usedBytes" not in alarm.facts:
        used = f"{alarm.number('usedPercent')} % of global-max-size"
    if 0 < alarm.number("limitMessages") <= alarm.number("usedMessages"):
        used = f"{messages(alarm.number('usedMessages'))} of {alarm.number('limitMessages'):,}"
    text = f"all messages of the node take {used}: every address counts as full"
    remedy = "consume what waits; or <global-max-size>…</global-max-size>, as far as the machine has memory"
    return WARNING, text, remedy


def _address_paused(alarm: AlarmView) -> Shown:
    text = f"address {alarm.address} is paused: its queues give out nothing"
    return WARNING, text, f"management operation resume of address.{alarm.address}"


def _blocked_by_operator(alarm: AlarmView) -> Shown:
    text = f"an operator blocks address {alarm.address}: its senders wait"
    if alarm.number("waitingSenders"):
        text += f", {alarm.number('waitingSenders'):,} of them now"
    return ERROR, text, f"management operation unblock of address.{alarm.address}"


def _address_blocked(alarm: AlarmView) -> Shown:
    waiting = alarm.number("waitingSenders")
    text = f"address {alarm.address} is full ({_fill(alarm)})"
    text += f": {counted(waiting, 'sender')} wait{'s' * (waiting == 1)}" if waiting else ": its senders must wait"
    return ERROR if waiting else WARNING, text, _room(alarm)


def _drops(alarm: AlarmView) -> Shown:
    dropped = alarm.number("dropped")
    full = _is_full(alarm)
    text = f"address {alarm.address} has the policy DROP"
    if dropped:
        text += f" and has discarded {messages(dropped)} since the start of the node"
    if full:
        text += f"; it is full ({_fill(alarm)}), and discards what comes"
    return ERROR if full else WARNING, text, _room(alarm)


def _refuses(alarm: AlarmView) -> Shown:
    return ERROR, f"address {alarm.address} is full ({_fill(alarm)}) and refuses messages (policy FAIL)", _room(alarm)


def _page_limit(alarm: AlarmView) -> Shown:
    text = f"address {alarm.address} has {messages(alarm.number('pagedMessages'))} in page files, its page limit: " \
        "it takes no more"  # fmt: skip
    setting = "<page-limit-bytes>-1</page-limit-bytes><page-limit-messages>-1</page-limit-messages>"
    remedy = f'consume what waits; or <address-setting match="{alarm.address}">{setting}</address-setting>'
    return ERROR, text, remedy


def _pages(alarm: AlarmView) -> Shown:
    paged = messages(alarm.number("pagedMessages"))
    return NOTE, f"address {alarm.address} is over its limit in memory: {paged} in page files", ""


def _over_limit(alarm: AlarmView) -> Shown:
    percent = alarm.number("limitPercent")
    text = f"address {alarm.address} is at {percent} % of its limit: it pages, blocks, refuses or drops"
    return WARNING, text, "consume what waits; its address-full-policy says what becomes of further messages"


def _unknown(alarm: AlarmView) -> Shown:
    figures = ", ".join(f"{name} {value}" for name, value in alarm.facts.items())
    text = f"{alarm.name.replace('_', ' ')} {alarm.address}".rstrip()
    return WARNING, f"{text} ({figures})" if figures else text, ""


TEXTS: Final[dict[str, Callable[[AlarmView], Shown]]] = {
    "disk_exhausted": _disk_exhausted,
    "disk_full": _disk_full,
    "disk_behind": _disk_behind,
    "memory_full": _memory_full,
    "address_paused": _address_paused,
    "address_blocked_by_operator": _blocked_by_operator,
    "address_blocked": _address_blocked,
    "address_drops_messages": _drops,
    "address_refuses_messages": _refuses,
    "address_page_limit": _page_limit,
    "address_pages": _pages,
    "address_over_limit": _over_limit,
}


def _is_full(alarm: AlarmView) -> bool:
    pairs = (("bytes", "limitBytes"), ("messages", "limitMessages"))
    return any(0 <= alarm.number(limit) <= alarm.number(used) for used, limit in pairs)


def _fill(alarm: AlarmView) -> str:
    if 0 <= alarm.number("limitMessages") <= alarm.number("messages"):
        return f"{messages(alarm.number('messages'))}, max-size-messages is {alarm.number('limitMessages'):,}"
    if 0 <= alarm.number("limitBytes"):
        return f"{bytes_text(alarm.number('bytes'))}, max-size-bytes is {bytes_text(alarm.number('limitBytes'))}"
    return "by the limits of the node"


def _room(alarm: AlarmView) -> str:
    setting = "<address-full-policy>PAGE</address-full-policy>"
    return f'consume what waits; or <address-setting match="{alarm.address}">{setting}</address-setting>'
