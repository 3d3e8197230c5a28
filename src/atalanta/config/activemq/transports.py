"""Conversion of `<transportConnectors>` and `<sslContext>` to acceptors.

Each scheme has its protocols. Those that this version does not serve are told by the reader of broker.xml, which
gets them in `protocols=`.
"""

from __future__ import annotations

import re
from typing import Final

from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import Core, Elements, listed, only
from atalanta.config.problems import nearest
from atalanta.config.xml.tree import XmlElement, made
from atalanta.wire.stomp.decoder import BODY_BYTES_MAX
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_authority, parse_params, uri_text

AGENT: Final = "discoveryAgent"
WAYS_OF_AGENT: Final = 'write discoveryUri="multicast://default" (docs/guide/networks.md)'


class TransportConnectors:
    """Reads the connectors. `options_for_openwire` are further parameters of acceptors with OpenWire."""

    def __init__(self, elements: Elements, core: Core) -> None:
        self.elements = elements
        self.core = core
        self.options_for_openwire: dict[str, str] = {}
        self.schedules = False
        self.tls: dict[str, str] = {}
        self.ssl_domain = ""
        self.discovery_uris: dict[str, str] = {}
        self.nodes: list[XmlElement] = []

    def ssl_context(self, node: XmlElement) -> None:
        """Reads the key and trust store of `<sslContext><sslContext …/></sslContext>`."""
        inner = only(node) if not node.attributes else node
        if inner is None or inner.name != "sslContext":
            self.elements.problem(node, "<sslContext> holds one <sslContext keyStore=… />")
            return
        names = (*tables.SSL, "keyStoreKeyPassword")
        values = self.elements.values(inner, names, tables.SSL_SILENT)
        key = values.pop("keyStoreKeyPassword", None)
        if key is not None and key != values.get("keyStorePassword"):
            text = "the key has another password than its store: there is one for both here"
            self.elements.problem(inner, text)
        for name, text in values.items():
            if name in ("keyStore", "trustStore", "crlPath"):
                text = self._file(inner, name, text)
            self.tls[tables.SSL[name]] = text

    def _file(self, node: XmlElement, name: str, text: str) -> str:
        """Returns the path of a store: Spring's `file:` is taken away; other resources cannot be read."""
        if text.startswith("file:"):
            path = text.removeprefix("file:")
            return path.removeprefix("//") if path.startswith("///") else path
        if text.startswith(("classpath:", "http:", "https:", "jar:")):
            self.elements.problem(node, f"{name}: '{text}' is not a file", "write file:${activemq.conf}/NAME")
        return text

    def read(self, section: XmlElement) -> None:
        """Notes the connectors. `finish` converts them, when the whole file was read."""
        self.elements.children(section, {"transportConnector": self.nodes.append})

    def finish(self) -> None:
        """Adds the acceptors."""
        for node in self.nodes:
            self._connector(node)

    def _connector(self, node: XmlElement) -> None:
        self._find_agent(node)
        values = self.elements.values(node, tables.CONNECTOR, tables.CONNECTOR_SILENT, tables.CONNECTOR_LOST)
        self.elements.children(node, {}, {}, tables.CONNECTOR_LOST)
        text = values.get("uri", "")
        name = values.get("name") or text.partition("?")[0]
        scheme, separator, rest = text.partition("://")
        words = scheme.split("+")
        if scheme in tables.SCHEMES_LOST:
            what = f"transportConnector {name}"
            self.elements.finding(node, what, f"not opened: {tables.SCHEMES_LOST[scheme]}", True)
            return
        known = words[0] in tables.PROTOCOLS and all(word in tables.SCHEME_WORDS for word in words[1:])
        if not separator or not known:
            hint = nearest(scheme, tables.PROTOCOLS) or f"one of {', '.join(tables.PROTOCOLS)}"
            self.elements.problem(node, f"transportConnector {name}: '{text}' has no known scheme", hint)
            return
        try:
            authority, _, query = rest.partition("?")
            host, port = parse_authority(authority)
            given = parse_params(query)
        except UriError as error:
            self.elements.problem(node, f"transportConnector {name}: {error}")
            return
        protocols = self._protocols(node, words[0], given)
        options = {"protocols": protocols, **self._options(node, name, protocols, given)}
        if "STOMP" in protocols:
            options.update({"stompClassic": "true", **self._stomp_options(node, name, given)})
        if any(word in tables.SECURE for word in words):
            options.update({"sslEnabled": "true", **self.tls})
            if self.ssl_domain:
                options["securityDomain"] = self.ssl_domain
        if "OPENWIRE" in protocols:
            options.update(self.options_for_openwire)
            options.update({each: values[each] for each in tables.CLUSTER_CLIENTS if each in values})
        if not self.schedules and ("OPENWIRE" in protocols or "STOMP" in protocols):
            options["schedulerSupport"] = "false"
        for each in ("allowLinkStealing", "autoStart"):
            if each in values:
                options[each] = values[each]
        if values.get("discoveryUri"):
            self.discovery_uris[name] = values["discoveryUri"]
            options["discoveryUri"] = values["discoveryUri"]
        port = DEFAULT_PORT if port is None else port
        self.core.add("acceptors", made(node, "acceptor", uri_text(host, port, options), name=name))

    def _find_agent(self, node: XmlElement) -> None:
        """Reports an agent that other brokers would find this one by."""
        agents = [child for child in node.children if child.name == AGENT]
        if agents or node.attributes.pop(AGENT, ""):
            node.children = [child for child in node.children if child.name != AGENT]
            name = f"transportConnector {AGENT}"
            self.elements.others(node, name, "others do not find this broker", WAYS_OF_AGENT)

    def _protocols(self, node: XmlElement, word: str, given: dict[str, str]) -> str:
        """Returns the protocols of the scheme; those of `auto` can be chosen by `auto.protocols`."""
        protocols = tables.PROTOCOLS[word]
        chosen = given.pop("auto.protocols", "")
        if not chosen:
            return protocols
        names = {"default": "CORE,OPENWIRE", "openwire": "CORE,OPENWIRE"}
        found = [names.get(each, each.upper()) for each in listed(chosen)]
        unknown = [each for each in found if each not in protocols]
        if unknown:
            self.elements.problem(node, f"auto.protocols: '{unknown[0].lower()}' is not known")
        return ",".join(found)

    def _options(self, node: XmlElement, name: str, protocols: str, given: dict[str, str]) -> dict[str, str]:
        """Converts the options of the URI to parameters of the acceptor."""
        found: dict[str, str] = {}
        for key, text in given.items():
            if key in tables.OPTIONS:
                found[tables.OPTIONS[key]] = text
            elif "STOMP" in protocols and (key in tables.STOMP_OPTIONS or key in tables.STOMP_SIZES):
                if key == "wireFormat.maxFrameSize" and protocols != "STOMP":
                    self._frame_size(node, name, protocols, text, found)
            elif key == "transport.useInactivityMonitor":
                if not self.elements.true(node, given, key, True):
                    found["maxInactivityDuration"] = "0"
            elif key == "wireFormat.maxFrameSize":
                self._frame_size(node, name, protocols, text, found)
            elif key in ("protocolDetectionTimeOut", "transport.connectAttemptTimeout", "connectAttemptTimeout"):
                milliseconds = self.elements.whole(node, given, key, 10_000)
                found["handshake-timeout"] = str(-(-milliseconds // 1000))
            elif key in tables.OPTIONS_FIXED:
                self.elements.fixed(node, f"transportConnector {name}: {key}", text, tables.OPTIONS_FIXED[key])
            elif key in tables.OPTIONS_LOST:
                self.elements.finding(node, f"transportConnector {name}: {key}", tables.OPTIONS_LOST[key], True)
            elif key in tables.OPTIONS_SILENT:
                self.elements.finding(node, f"transportConnector {name}: {key}", tables.OPTIONS_SILENT[key])
            else:
                tabled = (tables.OPTIONS, tables.OPTIONS_SILENT, tables.OPTIONS_FIXED, tables.OPTIONS_LOST)
                hint = nearest(key, [each for table in tabled for each in table])
                self.elements.problem(node, f"transportConnector {name}: unknown option '{key}'", hint)
        return found

    def _stomp_options(self, node: XmlElement, name: str, given: dict[str, str]) -> dict[str, str]:
        """Converts the options for STOMP. A body stays in memory: a limit beyond this broker's own is reported."""
        found = {parameter: given[key] for key, parameter in tables.STOMP_OPTIONS.items() if key in given}
        grace = found.get("heartBeatToConnectionTtlModifier", "")
        if re.fullmatch(r"0*(\.\d*)?", grace) and grace:
            what = f"transportConnector {name}: transport.hbGracePeriodMultiplier"
            why = "1 counts: a client may be silent for one of its heart-beats at least"
            self.elements.finding(node, what, why, True)
            found["heartBeatToConnectionTtlModifier"] = "1"
        for key in tables.STOMP_SIZES:
            if key not in given:
                continue
            size = self.elements.whole(node, given, key, BODY_BYTES_MAX)
            if size > BODY_BYTES_MAX:
                why = f"a body from a STOMP client has at most {BODY_BYTES_MAX} bytes, a larger one is refused"
                self.elements.finding(node, f"transportConnector {name}: {key}", why, True)
            lowest = int(found.get("stompMaxDataLength", BODY_BYTES_MAX))
            found["stompMaxDataLength"] = str(max(min(size, lowest), 1))
        return found

    def _frame_size(self, node: XmlElement, name: str, protocols: str, text: str, found: dict[str, str]) -> None:
        names = [tables.FRAME_SIZES[each] for each in protocols.split(",") if each in tables.FRAME_SIZES]
        found.update(dict.fromkeys(names, text))
        if not names:
            what = f"transportConnector {name}: wireFormat.maxFrameSize"
            self.elements.finding(node, what, tables.OPTIONS_SILENT["wireFormat.maxFrameSize"])
