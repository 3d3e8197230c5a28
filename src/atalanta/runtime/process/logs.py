"""Log lines: one line per event, `name key=value …` or one JSON object, with a limit per second.

Every line of a node is an event with a stable name (docs/reference/events.md lists them). For a bug in Atalanta a
traceback follows the event in text; in JSON it is a field of the event.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Final

from atalanta.kernel.event_record import EventRecord

# The last word of an event's name gives the level; every other event has level info.
WARNING_WORDS: Final = {
    "failed", "refused", "lost", "stepped", "unsupported", "overflow", "slow", "error", "blocked",
    "full", "missing", "cut", "unreadable", "incomplete", "unknown", "warning",
}  # fmt: skip
ERROR_WORDS: Final = {"bug", "corrupt", "damaged", "fatal"}
# Names whose last word does not give the level.
LEVELS: Final = {
    "journal_failed": logging.CRITICAL,
    "node_failed": logging.CRITICAL,
    "node_bug": logging.CRITICAL,
    "disk_error": logging.CRITICAL,
    "disk_hung": logging.CRITICAL,
    "disk_exhausted": logging.ERROR,
    "duplicate_node_id": logging.ERROR,
    "address_drops_messages": logging.WARNING,
    "subscription_drops_messages": logging.WARNING,
    "uncommitted_refused": logging.WARNING,
    "configuration_changes_dropped": logging.WARNING,
    "configuration_changes_unwritable": logging.WARNING,
    "binding_known_elsewhere": logging.WARNING,
    "acceptor_closed": logging.ERROR,
    "broker_killed": logging.ERROR,
    "clock_given_back": logging.WARNING,
    "clock_set_back": logging.WARNING,
    "cluster_connection_kept": logging.WARNING,
    "cluster_default_password": logging.WARNING,
    "cluster_gave_up": logging.WARNING,
    "critical_component_hangs": logging.CRITICAL,
    "command_left_out": logging.WARNING,
    "connection_timed_out": logging.WARNING,
    "console_ended": logging.WARNING,
    "connector_kept": logging.WARNING,
    "core_bridge_gave_up": logging.WARNING,
    "core_bridge_not_made": logging.WARNING,
    "directory_unavailable": logging.ERROR,
    "discovery_group_kept": logging.WARNING,
    "discovery_no_announcement": logging.WARNING,
    "member_deposed": logging.WARNING,
    "unfinished_messages_limit": logging.WARNING,
    "member_unreachable": logging.WARNING,
    "messages_deleted": logging.WARNING,
    "multicast_join_failed": logging.ERROR,
    "network_bridge_gave_up": logging.WARNING,
    "node_id_shared": logging.ERROR,
    "not_dialed_back": logging.WARNING,
    "pair_names_differ": logging.WARNING,
    "epoch_lost": logging.ERROR,
    "epoch_not_emptied": logging.WARNING,
    "folder_claimed": logging.WARNING,
    "lease_expired": logging.WARNING,
    "lease_lengths_differ": logging.WARNING,
    "group_undecided": logging.WARNING,
    "groups_freed": logging.WARNING,
    "hosted_backup_ended": logging.WARNING,
    "grouping_handler_kept": logging.WARNING,
    "guard_killed": logging.ERROR,
    "guard_not_started": logging.WARNING,
    "guard_unreachable": logging.WARNING,
    "option_without_effect": logging.WARNING,
    "register_replaced": logging.ERROR,
    "register_restored": logging.WARNING,
    "register_uncertain": logging.WARNING,
    "replica_awaited": logging.WARNING,
    "replica_removed": logging.WARNING,
    "resource_not_created": logging.WARNING,
    "message_not_scheduled": logging.WARNING,
    "retroactive_consumer_in_vain": logging.WARNING,
    "route_to_unknown_binding": logging.WARNING,
    "scale_down_left": logging.WARNING,
    "scale_down_retained": logging.WARNING,
    "scale_down_waits_for_target": logging.WARNING,
    "second_grouping_handler": logging.ERROR,
    "slow_consumer": logging.WARNING,
    "started_process_lost": logging.ERROR,
    "stopped_without_successor": logging.WARNING,
    "store_and_forward_name_taken": logging.ERROR,
    "store_wait_timed_out": logging.ERROR,
    "transaction_timed_out": logging.WARNING,
    "voter_failed": logging.ERROR,
    "voter_folder_awaited": logging.WARNING,
    "voter_lost": logging.ERROR,
    "voter_not_started": logging.ERROR,
}
MESSAGE_TRACE: Final = "trace_"
# Lines of one name within one second; a client with a thousand failed logins causes fifty lines.
LINES_PER_SECOND_MAX: Final = 50
NAMES_MAX: Final = 1_000
TEXT_FORMAT: Final = "%(asctime)s.%(msecs)03dZ %(levelname)-8s %(name)s %(message)s"
TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"
# What management tells of the log; threads may note events, too.
RECORD: Final = EventRecord()


def level_of(name: str) -> int:
    """Returns the logging level of the event `name`: "dial_failed" is a warning, "node_bug" an error."""
    known = LEVELS.get(name)
    if known is not None:
        return known
    if name.startswith(MESSAGE_TRACE):
        return logging.DEBUG
    word = name.rsplit("_", 1)[-1]
    if word in ERROR_WORDS:
        return logging.ERROR
    return logging.WARNING if word in WARNING_WORDS else logging.INFO


def render(value: object) -> str:
    """Formats a field's value on one line, quoted if it would be ambiguous."""
    text = value.hex() if isinstance(value, bytes) else str(value)
    if text and all(character.isprintable() and character not in ' "=' for character in text):
        return text
    return '"' + text.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'


def log_event(
    logger: logging.Logger,
    name: str,
    fields: dict[str, object],
    error: BaseException | None = None,
) -> None:
    """Logs one event as one line. Event names are stable: operators search for them and set alerts."""
    level = level_of(name)
    if level > logging.DEBUG:
        RECORD.note(int(time.time() * 1_000), level, name, fields)
    if logger.isEnabledFor(level):
        words = [f"{key}={render(value)}" for key, value in fields.items()]
        text = " ".join([name, *words])
        logger.log(level, "%s", text, exc_info=error, extra={"event": name, "fields": fields})


class LineLimit:
    """Limits the lines per event name; the first line after suppressed ones has their number."""

    def __init__(self, lines_max: int = LINES_PER_SECOND_MAX) -> None:
        self.lines_max = lines_max
        self._second = 0
        self._lines: dict[str, int] = {}
        self._hidden: dict[str, int] = {}

    def take(self, name: str, now_s: float) -> int:
        """Returns -1 for no line, else the number of suppressed lines since the last line of this name."""
        second = int(now_s)
        if second != self._second:
            self._second = second
            self._lines.clear()
        lines = self._lines.get(name, 0)
        if lines >= self.lines_max:
            if name in self._hidden or len(self._hidden) < NAMES_MAX:
                self._hidden[name] = self._hidden.get(name, 0) + 1
            return -1
        self._lines[name] = lines + 1
        return self._hidden.pop(name, 0)


class JsonFormatter(logging.Formatter):
    """Formats `{"time": …, "level": …, "logger": …, "event": …, fields…}`; lines of libraries are the event
    "message"."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats the record as one line, with any contents."""
        stamp = time.strftime(TIME_FORMAT, time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", "message"),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            for key, value in fields.items():
                line[f"field_{key}" if key in line else key] = _json_value(value)
        else:
            line["text"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _json_value(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def configure_logging(level: int, as_json: bool) -> None:
    """Sends the log of the process to stderr, with times in UTC."""
    formatter: logging.Formatter
    if as_json:
        formatter = JsonFormatter()
    else:
        formatter = logging.Formatter(TEXT_FORMAT, TIME_FORMAT)
        formatter.converter = time.gmtime
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
