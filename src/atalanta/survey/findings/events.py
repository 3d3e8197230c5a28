"""Findings about what a node has logged: its errors, and warnings that no state of it shows.

Each event of level error has a finding of its own here, or an entry of ELSEWHERE that says which finding or which
reason stands for it. `tests/survey/findings/test_events.py` holds the two tables to the events of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from atalanta.survey.findings.cluster_finding import ERROR, NOTE, WARNING, ClusterFinding
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.health import EventView
from atalanta.survey.texts import duration_text

LOGIN_MS: Final = 600_000  # a refused login is told for so long
INCIDENT_MS: Final = 86_400_000  # an incident is a note after that
SHOWN_MAX: Final = 3  # subjects of one event, of several
ERROR_LEVELS: Final = ("error", "critical")
LOOK_AT_DISK: Final = "look at the disk of its data folder"
ENDS: Final = "the process ends with it: the node is away (member_away, unreachable), and its log says why"


@dataclass(frozen=True)
class EventFinding:
    """The finding of an event. `text` and `remedy` have names of fields in braces.

    `subject` is the field that tells one event of the name from another. `over` are the events that end what it tells,
    for the same subject. `for_ms`: how long it is told, None as long as the process lives; `later` is its severity
    after INCIDENT_MS.
    """

    text: str
    remedy: str = ""
    severity: str = ERROR
    subject: str = ""
    over: tuple[str, ...] = ()
    for_ms: int | None = None
    later: str | None = None


FINDINGS: Final[dict[str, EventFinding]] = {
    "acceptor_closed": EventFinding("acceptor {acceptor} is not open: {why}", "{what_to_do}", subject="acceptor"),
    "critical_component_hangs": EventFinding(
        "{component} has not moved for {seconds} s", LOOK_AT_DISK, subject="component",
        over=("critical_component_resumed",),
    ),
    "directory_unavailable": EventFinding(
        "directory {directory} gives no answers, so nobody new comes in by it: {why}", "{what_to_do}",
        subject="directory", over=("directory_available",),
    ),
    "duplicate_node_id": EventFinding("another node, at {other}, runs on a copy of its data folder", "{what_to_do}",
                                      subject="other"),
    "large_message_damaged": EventFinding(
        "the file of large message {message} of {queues} is damaged: {file}", LOOK_AT_DISK, subject="message",
        later=NOTE,
    ),
    "multicast_join_failed": EventFinding(
        "it cannot join the group of discovery {group}, and meets nobody by it: {why}",
        "is the interface up, and does <local-bind-address> name it?", subject="group",
        over=("multicast_joined",),
    ),
    "node_id_shared": EventFinding("two nodes, at {one} and {other}, run on copies of one data folder", "{what_to_do}",
                                   subject="node"),
    "page_file_damaged": EventFinding(
        "a page file of queue {queue} is damaged: at most {messages} messages are lost ({sequences}): {why}",
        f"{LOOK_AT_DISK}; the file is kept as ….page.damaged", subject="queue", later=NOTE,
    ),
    "register_replaced": EventFinding(
        "the manager of the group has another register, of epoch {found}: {active} may serve, too", "{what_to_do}",
    ),
    "reload_bug": EventFinding(
        "a reload failed by a mistake of the broker: the former configuration counts",
        "please report it with the log; a restart reads the files", over=("configuration_reloaded",),
    ),
    "second_grouping_handler": EventFinding(
        "node {node} has a LOCAL grouping-handler, too: {why}",
        '<grouping-handler name="…"><type>REMOTE</type>…</grouping-handler> at one of the two', subject="node",
    ),
    "store_and_forward_name_taken": EventFinding(
        "a queue of another kind has the name {queue}: there is no link to node {node}", "{what_to_do}",
        subject="queue",
    ),
    # -- warnings that no state shows ---------------------------------------------------------------
    "login_refused": EventFinding(
        "refused logins: {count}, the last one of user {user} from {remote}, {ago} ago",
        "correct the user or password there; an unknown host may be guessing", WARNING, for_ms=LOGIN_MS,
    ),
    "cluster_login_refused": EventFinding(
        "wrong cluster credentials from {remote}, {ago} ago", "{what_to_do}", WARNING, subject="remote",
        over=("cluster_login_accepted",),
    ),
    "command_failed": EventFinding(
        "a command of a client failed by a mistake of the broker ({protocol}, {command}): {why}",
        "please report it with the log", WARNING, subject="place", for_ms=INCIDENT_MS,
    ),
    "core_bridge_not_made": EventFinding("core bridge {bridge} could not be created: {why}", "correct its <bridge>",
                                         subject="bridge", over=("core_bridge_started",)),
    "divert_refused": EventFinding("divert {divert} could not be created: {why}", "correct its <divert>",
                                   subject="divert", over=("configuration_reloaded",)),
    "divert_address_missing": EventFinding(
        "divert {divert} leads to {address}, which does not exist and may not be created: its messages are not routed",
        '<address name="{address}"/>', subject="divert", over=("configuration_reloaded",),
    ),
    "dead_letter_address_missing": EventFinding(
        "messages of {address} used up their delivery attempts and were dropped: it has no dead-letter address",
        '<address-setting match="{address}"><dead-letter-address>DLQ</dead-letter-address></address-setting>',
        subject="address", for_ms=INCIDENT_MS,
    ),
    "moved_message_lost": EventFinding(
        "a message of {queue} could be moved nowhere, and was dropped: {why}",
        "an address for dead letters and expired messages that exists, with a queue", subject="queue",
        for_ms=INCIDENT_MS,
    ),
    "subscription_drops_messages": EventFinding(
        "a slow subscriber of {address} has lost messages: more than {limit} waited",
        "a faster subscriber; or a higher pending-message-limit", WARNING, subject="queue", for_ms=INCIDENT_MS,
    ),
    "connection_refused": EventFinding(
        "acceptor {acceptor} had its limit of {limit} connections, {ago} ago: clients were refused",
        "fewer connections; or a higher connectionsAllowed, or limit of open files", WARNING, subject="acceptor",
        for_ms=LOGIN_MS,
    ),
    "reload_refused": EventFinding(
        "a reload was refused: {why}", "correct the file: `atalanta check`; the former configuration counts", WARNING,
        over=("configuration_reloaded",),
    ),
    "clock_set_back": EventFinding(
        "the clock of its machine was set back by {behind_ms} ms", "{what_to_do}", WARNING,
    ),
    "backup_missing": EventFinding("it has no backup: {why}", "{what_to_do}", WARNING, over=("backup_hosted",)),
    "register_uncertain": EventFinding("the manager of the group did not answer, {ago} ago: {why}", "{what_to_do}",
                                       WARNING, for_ms=LOGIN_MS),
    "resource_not_created": EventFinding(
        "queue {queue} for dead letters or expired messages could not be created: {why}",
        'create it: <address name="…"><anycast><queue name="…"/></anycast></address>', WARNING, subject="queue",
    ),
}  # fmt: skip

ELSEWHERE: Final[dict[str, str]] = {
    "broker_killed": "the guard logs it, whose broker has ended: another member serves. `doctor` of its folder finds "
    "member_stopped; the members find member_away or no_replica_in_sync",
    "disk_error": ENDS,
    "disk_exhausted": "the alarm of the same name lasts as long as the state",
    "disk_hung": ENDS,
    "epoch_lost": "another process serves by then, or none: `doctor` of the folder finds store_not_served or "
    "backup_missing",
    "guard_killed": ENDS,
    "journal_damaged": "a member that does not serve gives no sessions: `doctor` of its folder finds member_waits or "
    "replica_behind until the active member has repaired it, and the active one finds replica_behind",
    "journal_failed": ENDS,
    "lease_bug": "the store is given up: `doctor` of the folder finds store_not_served or backup_missing",
    "node_bug": ENDS,
    "node_failed": ENDS,
    "replica_file_damaged": "a follower gives no sessions, and the active member sends the file again: nothing is lost "
    "and nothing is to be done",
    "start_fatal": "no process runs: the others find member_away, and the start has printed the reason",
    "started_process_lost": ENDS,
    "store_wait_timed_out": "the primary has ended, while another process serves: `doctor` of the folder finds "
    "backup_missing",
    "voter_failed": "the guard logs it; the active member finds voter_silent",
    "voter_lost": "the guard logs it; the active member finds voter_silent",
    "voter_not_started": "the guard logs it; the active member finds voter_silent",
}


def event_findings(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    for node in cluster.nodes:
        for name, events in _by_name(node).items():
            known = FINDINGS.get(name)
            if known is not None:
                yield from _told(node, name, known, events)
            elif name not in ELSEWHERE and events[0].level in ERROR_LEVELS:
                yield _unknown(node, events[0])


def _by_name(node: NodeView) -> dict[str, list[EventView]]:
    """Returns the events by name, the newest of each first."""
    found: dict[str, list[EventView]] = {}
    for event in sorted(node.events, key=lambda each: -each.number):
        found.setdefault(event.name, []).append(event)
    return found


def _told(node: NodeView, name: str, known: EventFinding, events: list[EventView]) -> Iterator[ClusterFinding]:
    """Yields a finding for each subject of the event; those behind SHOWN_MAX are counted by `count` alone."""
    newest: dict[str, EventView] = {}
    for event in events:
        newest.setdefault(event.text(known.subject) if known.subject else "", event)
    shown = 0
    for event in newest.values():
        age_ms = node.age_ms(event)
        if _is_over(node, known, event) or (known.for_ms is not None and age_ms > known.for_ms):
            continue
        shown += 1
        if shown > SHOWN_MAX:
            return
        old = known.later is not None and age_ms > INCIDENT_MS
        severity = known.later if old and known.later is not None else known.severity
        words = Words(event.fields, count=f"{event.count:,}", ago=duration_text(age_ms))
        text, remedy = known.text.format_map(words), known.remedy.format_map(words)
        if not known.over and known.for_ms is None:
            text += f" (logged {duration_text(age_ms)} ago)"  # nothing tells whether it was mended since
        facts: dict[str, object] = {"time_ms": event.time_ms, "count": event.count, "fields": dict(event.fields)}
        yield ClusterFinding(severity, name, node.label, text, remedy, facts)


def _is_over(node: NodeView, known: EventFinding, event: EventView) -> bool:
    subject = known.subject
    return any(
        other.name in known.over
        and other.number > event.number
        and (subject not in other.fields or other.text(subject) == event.text(subject))
        for other in node.events
    )


def _unknown(node: NodeView, event: EventView) -> ClusterFinding:
    """Finds an error of a later release, which this program does not know."""
    said = ", ".join(f"{name} {value}" for name, value in event.fields.items())
    text = f"it has logged {event.name} {duration_text(node.age_ms(event))} ago: {said}"
    facts: dict[str, object] = {"event": event.name, "time_ms": event.time_ms, "fields": dict(event.fields)}
    return ClusterFinding(ERROR, "logged_error", node.label, text, "docs/reference/events.md says what it means", facts)


class Words(dict[str, str]):
    """The fields of an event as words of a text; a field that it lacks is "(unknown)"."""

    def __init__(self, fields: dict[str, object], **more: str) -> None:
        super().__init__({name: str(value) for name, value in fields.items()} | more)

    def __missing__(self, name: str) -> str:
        return "" if name == "what_to_do" else "(unknown)"
