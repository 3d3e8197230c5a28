"""Conversion of Elytron's ssl-contexts of the same standalone.xml to Artemis' TLS parameters.

A context names a key-manager and a trust-manager. Each of these names a key-store: a file with a password. A
setting without a counterpart (filters of cipher suites, JDK algorithms, credential stores …) is a problem at its
line. So no acceptor is less secure than the file says.
"""

from __future__ import annotations

from typing import Final

from atalanta.config import Report, nearest
from atalanta.config.wildfly.sockets import checked
from atalanta.config.xml import XmlElement, below

ELYTRON: Final = "urn:wildfly:elytron:"
SERVER: Final = "server-ssl-context"
CLIENT: Final = "client-ssl-context"
KINDS: Final = (SERVER, CLIENT, "key-store", "key-manager", "trust-manager")
# The folder of the standalone.xml, for relative paths.
CONFIG_FOLDER: Final = "jboss.server.config.dir"
HARMLESS: Final = (
    "name",
    "key-manager",
    "trust-manager",
    "protocols",
    "need-client-auth",
    "want-client-auth",
    # Only with its default value; see `_context`.
    "cipher-suite-filter",
    "use-cipher-suites-order",
    "session-timeout",
    "maximum-session-cache-size",
    "authentication-optional",
    "wrap",
    "providers",
    "provider-name",
)


class SslContexts:
    """The ssl-contexts of the file. `options` returns None for an unreadable context, with a problem."""

    def __init__(self, root: XmlElement, report: Report) -> None:
        self.report = report
        self.known: dict[str, dict[str, XmlElement]] = {kind: {} for kind in KINDS}
        for node in below(root):
            if node.name in self.known and node.namespace.startswith(ELYTRON):
                self.known[node.name][node.attributes.get("name", "")] = node

    def options(self, user: XmlElement, kind: str, name: str) -> dict[str, str] | None:
        """Returns the parameters of a connector or acceptor that uses this context."""
        context = self._named(user, kind, name)
        if context is None:
            return None
        checked(context, self.report)
        found = {"sslEnabled": "true"}
        for attribute, text in context.attributes.items():
            if attribute not in HARMLESS or (
                attribute == "cipher-suite-filter" and text != "DEFAULT"
            ):
                self._problem(context, f"{attribute} of <{kind}> has no counterpart here")
        protocols = context.attributes.get("protocols", "").split()
        if protocols:
            found["enabledProtocols"] = ",".join(protocols)
        if kind == SERVER:
            for attribute, parameter in (
                ("need-client-auth", "needClientAuth"),
                ("want-client-auth", "wantClientAuth"),
            ):
                if context.attributes.get(attribute, "").lower() == "true":
                    found[parameter] = "true"
        for attribute, prefix in (("key-manager", "keyStore"), ("trust-manager", "trustStore")):
            if attribute in context.attributes:
                found.update(self._manager(context, attribute, prefix))
        return found

    def _manager(self, context: XmlElement, kind: str, prefix: str) -> dict[str, str]:
        manager = self._named(context, kind, context.attributes[kind])
        if manager is None:
            return {}
        checked(manager, self.report)
        found: dict[str, str] = {}
        for attribute, text in manager.attributes.items():
            if attribute == "alias-filter" and kind == "key-manager" and _is_alias(text):
                found["keyStoreAlias"] = text
            elif attribute not in ("name", "key-store", "algorithm", "providers", "provider-name"):
                self._problem(manager, f"{attribute} of <{kind}> has no counterpart here")
        store = self._named(manager, "key-store", manager.attributes.get("key-store", ""))
        password: str | None = None
        if store is not None:
            password = self._credential(store)
            found.update(self._store(store, prefix))
            if password is not None:
                found[f"{prefix}Password"] = password
        for child in manager.children:
            if child.name == "credential-reference":
                own = self._credential(manager)
                if own is not None and password is not None and own != password:
                    text = "the key has another password than its store: Artemis has one for both"
                    self._problem(child, text)
            elif child.name == "certificate-revocation-list" and kind == "trust-manager":
                path = self._path(child)
                if path is not None:
                    found["crlPath"] = path
            else:
                self._problem(child, f"<{child.name}> of <{kind}> has no counterpart here")
        return found

    def _store(self, store: XmlElement, prefix: str) -> dict[str, str]:
        found: dict[str, str] = {}
        checked(store, self.report)
        if "alias-filter" in store.attributes:
            self._problem(store, "alias-filter of <key-store> has no counterpart here")
        files = [*store.all("file"), *([store] if "path" in store.attributes else [])]
        if not files:
            self._problem(store, "this key-store is not a file")
        for file in files[:1]:
            path = self._path(file)
            if path is not None:
                found[f"{prefix}Path"] = path
        kinds = [each.attributes.get("type", "") for each in store.all("implementation")]
        kind = (kinds or [store.attributes.get("type", "")])[0]
        if kind:
            found[f"{prefix}Type"] = kind
        return found

    def _path(self, node: XmlElement) -> str | None:
        checked(node, self.report)
        path = node.attributes.get("path", "")
        base = node.attributes.get("relative-to", "")
        if base and base != CONFIG_FOLDER and not path.startswith("/"):
            text = f"'{base}' is not known here: only {CONFIG_FOLDER}, the folder of this file"
            self._problem(node, text, "write the whole path")
            return None
        return path

    def _credential(self, node: XmlElement) -> str | None:
        for reference in node.all("credential-reference"):
            if "clear-text" in reference.attributes:
                return checked(reference, self.report).attributes["clear-text"]
            self._problem(
                reference,
                "WildFly's credential stores cannot be read",
                'write clear-text="${NAME}" and set that environment variable',
            )
        return None

    def _named(self, user: XmlElement, kind: str, name: str) -> XmlElement | None:
        found = self.known[kind].get(name)
        if found is None:
            hint = nearest(name, list(self.known[kind]))
            self._problem(user, f"there is no {kind} '{name}' in this file", hint)
        return found

    def _problem(self, node: XmlElement, text: str, hint: str = "") -> None:
        self.report.problem(node.file, node.line, text, hint)


def _is_alias(text: str) -> bool:
    """Returns whether the text is a single alias, not a filter such as `ALL:-old`."""
    return bool(text) and not any(character in text for character in ":,+-*")
