"""Limits of the shell: every buffer and wait of this package, with the reason for its size."""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, waits in seconds, counts in pieces."""

    # Above the high mark nothing is delivered to a connection any more, until it falls below the
    # low mark. It is still read from: its acknowledgements may be what lets its reader go on.
    write_high_bytes: int = 1024 * 1024
    write_low_bytes: int = 256 * 1024
    # This much can only be answers to requests: who does not take them may not send further ones.
    read_stop_bytes: int = 8 * 1024 * 1024
    # More than this unsent on one connection means that flow control has failed: it is closed. Above
    # the largest message.
    write_max_bytes: int = 256 * 1024 * 1024
    # Connections of all acceptors together; the operating system's limit on files may be lower.
    connections_max: int = 10_000
    # Files of the process that are no connections: journal segments, logs, acceptors, the loop.
    files_reserved: int = 128
    # What was written before a close has this long to leave.
    close_linger_s: float = 5.0
    dial_timeout_s: float = 30.0
    # A graceful stop: everything written and on disk within this, or the rest is cut off.
    stop_deadline_s: float = 10.0
    # Clients that were coming from another node just then are answered, until they go on to the next.
    stop_arrivals_s: float = 3.0
    # A UDP group that could not be joined (an interface that is not up yet) is tried again.
    join_retry_s: float = 5.0
    # Datagrams taken per wake-up, so that a flood does not starve the connections.
    datagrams_per_turn: int = 64
    # The receive buffer of a multicast socket; a datagram is never larger than 64 KiB.
    datagram_buffer_bytes: int = 256 * 1024
    # A step of the wall clock is noticed within this.
    clock_check_s: float = 5.0


def limits_of_this_process() -> Limits:
    """The limits with as many connections as the operating system lets this process have.

    Raises the soft limit on open files to the hard one.
    """
    limits = Limits()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections_max + limits.files_reserved
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        connections_max = max(soft - limits.files_reserved, limits.files_reserved)
        limits = replace(limits, connections_max=min(limits.connections_max, connections_max))
    return limits
