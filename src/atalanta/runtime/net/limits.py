"""Limits of the shell: every buffer size and time limit of this package, with its reason."""

from __future__ import annotations

import resource
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Limits:
    """Sizes are in bytes, times in seconds."""

    # Above the high mark nothing is delivered to a connection until it falls below the low mark. Its input is still
    # read: an acknowledgement may let the client continue.
    write_high_bytes: int = 1024 * 1024
    write_low_bytes: int = 256 * 1024
    # So much output can only be answers to requests: a client that does not read them may not send further ones.
    read_stop_bytes: int = 8 * 1024 * 1024
    # More unsent data on one connection means that flow control has failed: the connection is closed. Above the
    # largest message.
    write_max_bytes: int = 256 * 1024 * 1024
    # All acceptors together; the operating system's limit on files may be lower.
    connections_max: int = 10_000
    # Files of the process other than connections of acceptors: journal, large messages and their reserves, logs,
    # dialled peers, acceptors, HTTP, the event loop.
    files_reserved: int = 256
    # Time for output that was written before a close.
    close_linger_s: float = 5.0
    dial_timeout_s: float = 30.0
    # Time limit of a graceful stop for all output and commits; the rest is dropped.
    stop_deadline_s: float = 10.0
    # Time limit for clients that were just arriving from another node: they are redirected to the next one.
    stop_arrivals_s: float = 3.0
    # Interval of attempts to join a UDP group (its interface may not be up yet).
    join_retry_s: float = 5.0
    # Datagrams read per wake-up, so that a flood does not delay the connections.
    datagrams_per_turn: int = 64
    # Receive buffer of a multicast socket; a datagram has at most 64 KiB.
    datagram_buffer_bytes: int = 256 * 1024
    # Interval of checks for a step of the wall clock.
    clock_check_s: float = 5.0


def limits_of_this_process() -> Limits:
    """Returns the limits with as many connections as the operating system allows this process.

    Raises the soft limit on open files to the hard limit.
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
