"""Brokers and clients with TLS: one authority, its key stores, and how a broker.xml names them."""

from __future__ import annotations

from pathlib import Path

from tests.certificates import PASSWORD, Authority

from .node import BrokerProcess


class Stores:
    """One authority, and what both sides need of it."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.server = authority.holder("server", "localhost", "127.0.0.1").key_store(folder)
        self.client = authority.holder("client").key_store(folder)
        self.trust = authority.trust_store(folder)

    def acceptor(self, more: str = "") -> str:
        return f"sslEnabled=true;keyStorePath={self.server};keyStorePassword={PASSWORD}{more}"

    def connector(self, mark: str = ";") -> str:
        words = ("sslEnabled=true", f"trustStorePath={self.trust}", f"trustStorePassword={PASSWORD}")
        return mark.join(words)

    def client_key(self, mark: str = ";") -> str:
        return mark.join((f"keyStorePath={self.client}", f"keyStorePassword={PASSWORD}"))

    def asking(self) -> str:
        trust = f"trustStorePath={self.trust};trustStorePassword={PASSWORD}"
        return self.acceptor(f";needClientAuth=true;{trust}")


def change(node: BrokerProcess, old: str, new: str) -> None:
    path = node.folder / "etc" / "broker.xml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
