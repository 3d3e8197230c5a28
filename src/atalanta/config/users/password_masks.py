"""Masked passwords of a broker.xml: `ENC(...)`, `<mask-password>`, `<password-codec>` (PasswordMaskingUtil).

Passwords are unmasked when the whole file was read, since the codec's key may follow them.
"""

from __future__ import annotations

from collections.abc import Mapping

from atalanta.config.configuration import Configuration
from atalanta.config.problems import Report
from atalanta.config.xml.reader import BadValue, Handler, boolean
from atalanta.config.xml.tree import XmlElement

HINT = "or write it plainly, or as ${name} and set that environment variable"


class PasswordMasks:
    def __init__(
        self, configuration: Configuration, report: Report, values: Mapping[str, str]
    ) -> None:
        self.configuration = configuration
        self.report = report
        self.values = values
        self.codec: XmlElement | None = None
        self.masked: bool | None = None  # None: recognized by the form of the password
        self.cluster_password: XmlElement | None = None

    def handlers(self) -> dict[str, Handler]:
        return {
            "cluster-password": self._cluster_password,
            "password-codec": self._codec,
            "mask-password": self._mask,
        }

    def _cluster_password(self, node: XmlElement) -> None:
        self.cluster_password = node
        self.configuration.broker.cluster_password = node.text

    def _codec(self, node: XmlElement) -> None:
        self.codec = node

    def _mask(self, node: XmlElement) -> None:
        try:
            self.masked = boolean(node.text.strip())
        except BadValue as error:
            self.report.problem(node.file, node.line, f"{node.name}: {error}")

    def finish(self) -> None:
        """Replaces every masked password by the plain one."""
        configuration = self.configuration
        broker = configuration.broker
        node = self.cluster_password
        if node is not None:
            position = (node.file, node.line)
            broker.cluster_password = self._plain("cluster-password", node.text, position)
        for name, tls in [
            *((("acceptor", one.name), one.tls) for one in configuration.acceptors),
            *((("connector", one.name), one.tls) for one in configuration.connectors.values()),
        ]:
            if tls is None:
                continue
            position = configuration.position(*name)
            for which in ("keyStorePassword", "trustStorePassword"):
                attribute = "key_store_password" if which[0] == "k" else "trust_store_password"
                text = self._plain(
                    f"{name[0]} {name[1]}: {which}", getattr(tls, attribute), position
                )
                setattr(tls, attribute, text)
        for bridge in configuration.bridges:
            position = configuration.position("bridge", bridge.name)
            bridge.password = self._plain(f"bridge '{bridge.name}'", bridge.password, position)
        for router in configuration.routers:
            pool = router.pool
            if pool is not None and pool.password:
                position = configuration.position("connection-router", router.name)
                pool.password = self._plain(f"router '{router.name}'", pool.password, position)

    def _plain(self, what: str, text: str, position: tuple[str, int]) -> str:
        looks_masked = text.startswith("ENC(") and text.endswith(")")
        masked = looks_masked if self.masked is None else self.masked and text != ""
        if not masked:
            return text
        # Imported only for masked passwords: most files have none.
        from atalanta.tls.password_codec import codec_key, unmask

        try:
            key = codec_key("" if self.codec is None else self.codec.text, self.values)
            return unmask(text, key)
        except ValueError as error:
            self.report.problem(*position, f"{what}: {error}", HINT)
            return text
