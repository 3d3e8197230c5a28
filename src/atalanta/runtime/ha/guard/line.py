"""The line from a broker to its guard: a pair of connected sockets, one end in each process.

A report has the u64 epoch in which the broker is active from now on, and the secret of this epoch. A report that
brings a descriptor brings a listening socket for backups, and nothing else.
"""

from __future__ import annotations

import errno
import socket
import time

from atalanta.runtime.ha.guard.frames import SECRET_SIZE

REPORT_SIZE = 8 + SECRET_SIZE
BACKLOG = 16
LOOK_S = 0.02  # between two attempts to listen
# After the end of the broker, whatever ended it and whatever role it had: how long the voter of its guard answers. The
# survivor needs it to take over, and to remove this member from those in sync.
TAKEOVER_S = 10.0
# The end of process 1 of a container ends all others, the voter too. So long its guard waits before, below the 10 s
# that most have for a stop.
CONTAINER_STAY_S = 5.0
# After the end of the started process: within this time the broker has ended, and a little later its guard listens no
# more.
END_S = 3.0
LISTENS_S = 1.5


class GuardLine:
    """The broker's end. It is closed by the end of the process, and by nothing else."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def listen(self, host: str, port: int, wait_s: float = 0.0) -> int:
        """Opens a port for backups and gives it to the guard. Returns its number, for port 0 one that was free.

        To be called before `report`, once. OSError if the address cannot be bound; the guard of an earlier process may
        have `wait_s` to leave it. It may ask for the host's address.
        """
        end = time.monotonic() + wait_s
        while True:
            try:
                return self._listen_now(host, port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() >= end:
                    raise
            time.sleep(LOOK_S)

    def _listen_now(self, host: str, port: int) -> int:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.create_server(address[:2], family=family, backlog=BACKLOG) as listener:
            socket.send_fds(self._line, [bytes(REPORT_SIZE)], [listener.fileno()])
            return int(listener.getsockname()[1])

    def report(self, epoch: int, secret: bytes) -> None:
        """Tells the guard that this process is active in `epoch`, before any backup hears of it.

        `secret` (32 bytes, `frames.epoch_secret`) is what the guard signs the end of this epoch with.
        """
        if epoch < 1 or len(secret) != SECRET_SIZE:
            raise ValueError(f"epoch {epoch} with a secret of {len(secret)} bytes, not {SECRET_SIZE}")
        self._line.sendall(epoch.to_bytes(8, "big") + secret)


def receive_report(line: socket.socket) -> tuple[int, bytes, int | None] | None:
    """Returns epoch, secret and descriptor of the next report, None at the end of the line. BlockingIOError."""
    data, descriptors, _, _ = socket.recv_fds(line, REPORT_SIZE, 1)
    if not data:
        return None
    # A report is written at once, and no socket of this kind cuts or joins one so small.
    assert len(data) == REPORT_SIZE, f"a report of {len(data)} bytes"
    return int.from_bytes(data[:8], "big"), data[8:], descriptors[0] if descriptors else None
