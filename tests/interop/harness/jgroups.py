"""JGroups stacks of all kinds, a JMS client that finds its broker by one, and a DNS server that knows one address."""

from __future__ import annotations

import os
import random
import selectors
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Self

from tests.ports import free_port

from .client_versions import client_class_path
from .tools import ARTEMIS_VERSION, SMALL_JVM, class_path, java

CHANNEL = "jgroups-channel"
FILE = "stack.xml"
CLIENT = Path(__file__).resolve().parents[1] / "java-embedded" / "JgroupsClient.java"
PORT_RANGE = 3
IPV4 = "-Djava.net.preferIPv4Stack=true"
# What a member logs of one who speaks another version or cluster, or no JGroups at all.
COMPLAINTS = ("JGRP000006", "JGRP000010", "JGRP000012", "JGRP000030", "failed unmarshalling", "failed handling")
TRANSPORTS = {
    "UDP": '<UDP mcast_addr="{group}" mcast_port="{port}" bind_addr="127.0.0.1" bind_port="{port}" port_range="20"'
    ' ip_ttl="1" {threads}/>',
    "TCP": '<TCP bind_addr="127.0.0.1" bind_port="{port}" port_range="{range}" {threads}/>',
    "TCP_NIO2": '<TCP_NIO2 bind_addr="127.0.0.1" bind_port="{port}" port_range="{range}" {threads}/>',
}
DISCOVERIES = {
    "PING": "<PING/>",
    "MPING": '<MPING mcast_addr="{asked}" mcast_port="{port}" bind_addr="127.0.0.1" ip_ttl="1"/>',
    "TCPPING": '<TCPPING initial_hosts="127.0.0.1[{port}]" port_range="{range}"/>',
    "FILE_PING": '<FILE_PING location="{folder}"/>',
    "DNS_PING": '<dns.DNS_PING dns_query="localhost" dns_address="127.0.0.1:{dns}" probe_transport_ports="true"/>',
}
# Of 3.6 (its names of protocols and options), and of 5.x.
REST = {
    True: '<MERGE3 max_interval="30000" min_interval="10000"/><FD_SOCK/><FD_ALL/><VERIFY_SUSPECT timeout="1500"/>'
    '<BARRIER/><pbcast.NAKACK2 {nakack}/><UNICAST3/><pbcast.STABLE/><pbcast.GMS print_local_addr="false"'
    ' join_timeout="1000"/><MFC/><UFC/><FRAG2/>',
    False: '<MERGE3 max_interval="30000" min_interval="10000"/><FD_SOCK2/><FD_ALL3/><VERIFY_SUSPECT2 timeout="1500"/>'
    '<BARRIER/><pbcast.NAKACK2 {nakack}/><UNICAST3/><pbcast.STABLE/><pbcast.GMS print_local_addr="false"'
    ' join_timeout="1000"/><MFC/><UFC/><FRAG2/>',
}
ENCRYPTION = (
    '<SYM_ENCRYPT sym_algorithm="AES" keystore_name="{keys}" keystore_type="jceks" store_password="changeit"'
    ' alias="group"/>'
)


def made_keys(folder: Path) -> Path:
    """Returns a key store of the JVM with a secret key of a group."""
    path = folder / "group.jceks"
    tool = shutil.which("keytool") or str(Path(java()).with_name("keytool"))
    folder.mkdir(parents=True, exist_ok=True)
    command = [tool, "-genseckey", "-alias", "group", "-keyalg", "AES", "-keysize", "128", "-keystore", str(path)]
    subprocess.run([*command, "-storetype", "jceks", "-storepass", "changeit"], check=True, capture_output=True)
    return path


def is_old(version: str) -> bool:
    """Returns True for Artemis with JGroups 3.6."""
    return tuple(map(int, version.split(".")[:2])) < (2, 20)


class DnsServer:
    """A DNS server that answers each question for an address with 127.0.0.1."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                data, peer = self._socket.recvfrom(2_000)
            except OSError:
                return
            end = data.index(b"\0", 12) + 5
            is_a = data[end - 4 : end - 2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x05\0\4\x7f\0\0\1" if is_a else b""
            counts = b"\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
            self._socket.sendto(data[:2] + b"\x85\x80" + counts + data[12:end] + answer, peer)

    def close(self) -> None:
        """Ends the server."""
        self._socket.close()


class Stack:
    """A stack for a test: ports and groups of its own. `folder` is shared, for FILE_PING; `dns` is a server's port."""

    def __init__(self, transport: str, discovery: str, folder: Path, dns: int = 0, encrypted: bool = False) -> None:
        self.transport = transport
        self.discovery = discovery
        self._encryption = ENCRYPTION.format(keys=made_keys(folder)) if encrypted else ""
        number = random.randrange(1, 255)
        # Each member takes the next free port of a range, which no broker of the tests may have, and one 100 above for
        # FD_SOCK2: tests/ports.py leaves that free.
        port = [free_port() for _ in range(1 + PORT_RANGE)][0]
        groups = {"group": f"231.9.7.{number}", "asked": f"231.9.8.{number}"}
        self._values = {**groups, "port": port, "range": PORT_RANGE, "folder": folder, "dns": dns}

    def text(self, version: str) -> str:
        """Returns the file for an Artemis of that version."""
        old = is_old(version)
        threads = (
            'thread_pool.min_threads="2" thread_pool.max_threads="20"'
            if old
            else 'thread_pool.min_threads="0" thread_pool.max_threads="50"'
        )
        nakack = "" if self.transport == "UDP" else 'use_mcast_xmit="false"'
        values = {**self._values, "threads": threads, "nakack": nakack}
        rest = REST[old].replace("<BARRIER/>", "<BARRIER/>" + self._encryption)
        parts = TRANSPORTS[self.transport] + DISCOVERIES[self.discovery] + rest
        return f'<config xmlns="urn:org:jgroups">{parts.format(**values)}</config>\n'

    def write(self, folder: Path, version: str) -> None:
        """Writes the file into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(self.text(version))


class JgroupsClient:
    """A JMS client of that version in a JVM of its own, with the stack."""

    def __init__(self, version: str, stack: Stack, folder: Path) -> None:
        stack.write(folder, version)
        classes = class_path() if version == ARTEMIS_VERSION else client_class_path(version)
        command = [java(), *SMALL_JVM, IPV4, "-cp", f"{folder}{os.pathsep}{classes}", str(CLIENT)]
        url = f"jgroups://{CHANNEL}?file={FILE}&initialConnectAttempts=1"
        self._log = folder / "client.log"
        self._process = subprocess.Popen(
            [*command, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log.open("wb"), text=True
        )
        assert self._process.stdout is not None
        self._lines = selectors.DefaultSelector()
        self._lines.register(self._process.stdout, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._lines.close()

    def found_ms(self) -> int:
        """Connects anew, sends and receives. Returns how long it took; AssertionError if it found no broker."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        while True:
            assert self._lines.select(60), self.log()
            line = self._process.stdout.readline()
            if line.startswith("found "):
                return int(line.split()[1])
            if line.startswith("failed") or not line:
                raise AssertionError(line + self.log())

    def log(self) -> str:
        """Returns what the JVM has logged."""
        return self._log.read_text(errors="replace")


def complaints(log: str) -> list[str]:
    """Returns the lines of a member's log that are about one who is no member."""
    return [line for line in log.splitlines() if any(each in line for each in COMPLAINTS)]


