"""Listeners and locks are on high descriptors: they end before the connections of a killed process."""

from __future__ import annotations

import os
import resource
import socket

from atalanta.runtime.net.acceptor import bound_sockets
from atalanta.runtime.process.high_descriptor import high_descriptor


def test_a_listener_is_above_all_connections() -> None:
    listeners = bound_sockets("127.0.0.1", 0)
    ordinary = [socket.socket() for _ in range(20)]
    try:
        assert min(each.fileno() for each in listeners) > max(each.fileno() for each in ordinary)
        listeners[0].listen()
        ordinary[0].connect(listeners[0].getsockname())
    finally:
        for each in (*listeners, *ordinary):
            each.close()


def test_without_a_free_high_descriptor_the_low_one_stays() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    read, write = os.pipe()
    taken: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
        while len(taken) < 200:
            taken.append(os.dup(read))
    except OSError:
        assert high_descriptor(write) == write
    finally:
        for each in (read, write, *taken):
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
