"""Conversion of `<authorizationPlugin>` to security settings.

In Classic all entries that match a destination add up; here the most specific match decides alone. So each match has
the roles of the wider ones, too. A queue and a topic of one name are one address here: where both are written and
differ, only the roles of both count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import Core, Elements, listed
from atalanta.config.users.logins import LoginSource
from atalanta.config.xml.tree import XmlElement, made
from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch
from atalanta.kernel.security.security import CLASSIC_NAMESPACE, PERMISSIONS

ALL: Final = ">"
EVERYONE: Final = "ActiveMQ.everyone"  # the role of every user who has logged in
RIGHTS: Final = ("read", "write", "admin")
WILDCARD: Final = WildcardConfiguration(any_words=">")
_QUEUES: Final = (
    "createDurableQueue", "deleteDurableQueue", "createNonDurableQueue", "deleteNonDurableQueue",
)  # fmt: skip
# Right -> permissions. Who reads a topic makes its subscription, which is a queue here.
OF_QUEUES: Final = {
    "read": ("consume", "browse"),
    "write": ("send",),
    "admin": ("createAddress", "deleteAddress", *_QUEUES),
}
OF_TOPICS: Final = {**OF_QUEUES, "read": ("consume", "browse", *_QUEUES)}


@dataclass
class Entries:
    """The entries of one match. `roles`: (queue or topic, right) -> roles."""

    node: XmlElement
    roles: dict[tuple[str, str], list[str]] = field(default_factory=dict)


class Authorization:
    """Reads permissions. `finish` adds them to the tree."""

    def __init__(self, elements: Elements, core: Core) -> None:
        self.elements = elements
        self.core = core
        self.entries: dict[str, Entries] = {}
        self.temporary: dict[str, list[str]] | None = None
        self.node: XmlElement | None = None
        self.everyone = [EVERYONE]

    def read(self, node: XmlElement) -> None:
        """Reads the plugin."""
        self.node = node
        self.elements.children(node, {"map": self._map})

    def _map(self, node: XmlElement) -> None:
        for child in node.children:
            if child.name in ("cachedLDAPAuthorizationMap", "lDAPAuthorizationMap", "ldapAuthorizationMap"):
                text = "permissions of a directory (LDAP) are not read"
                self.elements.problem(child, text, "write them as <authorizationEntry> elements")
            elif child.name == "authorizationMap":
                self.elements.values(child, (), {}, {}, tables.GROUP_CLASS_FIXED)
                self.elements.children(
                    child,
                    {
                        "authorizationEntries": self._entries,
                        "tempDestinationAuthorizationEntry": self._temporary,
                        "defaultEntry": self._entries,
                    },
                )
            else:
                self.elements.problem(child, f"<{child.name}> is not an <authorizationMap>")

    def _entries(self, node: XmlElement) -> None:
        if node.name == "defaultEntry":
            for child in node.children:
                child.attributes.setdefault("queue", ALL)
        self.elements.children(
            node, {"authorizationEntry": self._entry, "tempDestinationAuthorizationEntry": self._temporary}
        )

    def _temporary(self, node: XmlElement) -> None:
        inner = [each for each in node.children if each.name == node.name]
        entry = inner[0] if inner else node
        values = self.elements.values(entry, RIGHTS, {}, {}, tables.GROUP_CLASS_FIXED)
        self.temporary = {right: _roles(values.get(right, "")) for right in RIGHTS}

    def _entry(self, node: XmlElement) -> None:
        values = self.elements.values(
            node, (*RIGHTS, "queue", "topic", "tempQueue", "tempTopic"), {}, {}, tables.GROUP_CLASS_FIXED
        )
        kinds = [kind for kind in ("queue", "topic") if values.get(kind)]
        temporary = [kind for kind in ("tempQueue", "tempTopic") if kind in values]
        for name in temporary:
            why = "Classic never asks it: write a <tempDestinationAuthorizationEntry>"
            self.elements.finding(node, f"authorizationEntry {name}", why, True)
        if temporary and not kinds:
            return
        if not kinds:
            self.elements.problem(node, "an <authorizationEntry> needs a queue or a topic", f'queue="{ALL}" is all')
        for kind in kinds:
            for match in listed(values[kind]):
                entries = self.entries.setdefault(match, Entries(node))
                for right in RIGHTS:
                    roles = entries.roles.setdefault((kind, right), [])
                    roles.extend(each for each in _roles(values.get(right, "")) if each not in roles)

    # -- the result ---------------------------------------------------------------------------------
    def finish(self, root: XmlElement, logins: LoginSource | None) -> None:
        """Adds the security settings. Without the plugin everyone who is logged in has all permissions."""
        authenticated = logins is not None
        if logins is not None and logins.guest is not None:
            self.everyone.append(logins.guest.role)
        self.core.put(root, "security-enabled", "true" if authenticated or self.node is not None else "false")
        if self.node is None:
            if authenticated:
                permissions = [each for each in PERMISSIONS if each not in ("view", "edit")]
                self._add(root, ALL, {each: [EVERYONE] for each in permissions})
            return
        for match, entries in self.entries.items():
            self._add(entries.node, match, self._permissions(match, entries))
        rights = self.temporary or dict.fromkeys(RIGHTS, [EVERYONE])
        self.core.put(self.node, "uuid-namespace", CLASSIC_NAMESPACE)
        self._add(self.node, f"{CLASSIC_NAMESPACE}.{ALL}", _by_permission(rights, OF_TOPICS))

    def _permissions(self, match: str, entries: Entries) -> dict[str, list[str]]:
        found: list[dict[str, list[str]]] = []
        for kind, table in (("queue", OF_QUEUES), ("topic", OF_TOPICS)):
            if (kind, "read") in entries.roles:
                rights = {right: self._covering(match, kind, right) for right in RIGHTS}
                found.append(_by_permission(rights, table))
        if len(found) == 2:
            return self._of_both(match, entries.node, *found)
        return self._with_manage(match, found[0])

    def _of_both(
        self, match: str, node: XmlElement, queue: dict[str, list[str]], topic: dict[str, list[str]]
    ) -> dict[str, list[str]]:
        """Returns the permissions of the roles that have them for queues and for topics of that name."""
        both: dict[str, list[str]] = {}
        less: dict[str, bool] = {}
        for name in topic:
            # Who reads a topic creates its queue; the queue's own entry does not say so.
            of_queue = queue.get(name, [])
            if name in _QUEUES:
                of_queue = [*of_queue, *(each for each in queue["consume"] if each not in of_queue)]
            both[name] = [each for each in topic[name] if each in of_queue]
            if name not in _QUEUES:
                less.update({each: True for each in [*topic[name], *of_queue] if each not in both[name]})
        if less:
            why = (
                "a queue and a topic of one name are one address: a role has there what both entries give it;"
                f" less than one of them says has {', '.join(less)}"
            )
            self.elements.finding(node, f"authorizationEntry {match}", why, True)
        return self._with_manage(match, both)

    def _with_manage(self, match: str, permissions: dict[str, list[str]]) -> dict[str, list[str]]:
        if match == ALL:
            permissions["manage"] = list(permissions["createAddress"])
        return permissions

    def _covering(self, match: str, kind: str, right: str) -> list[str]:
        """Returns the roles of all entries of that kind which cover `match`, its own first."""
        roles = list(self.entries[match].roles.get((kind, right), []))
        for other, entries in self.entries.items():
            if other != match and covers(other, match):
                roles += [each for each in entries.roles.get((kind, right), []) if each not in roles]
        return roles

    def _add(self, node: XmlElement, match: str, permissions: dict[str, list[str]]) -> None:
        setting = made(node, "security-setting", match=match)
        for name, roles in permissions.items():
            if EVERYONE in roles:
                roles = [*roles, *(each for each in self.everyone if each not in roles)]
            if roles:
                setting.children.append(made(node, "permission", type=name, roles=",".join(roles)))
        self.core.add("security-settings", setting)


def covers(wide: str, narrow: str) -> bool:
    """Returns whether every name that matches `narrow` matches `wide`, too."""
    if narrow.endswith(ALL) and not wide.endswith(ALL):
        return False
    try:
        return WildcardMatch(wide, WILDCARD).matches(narrow.removesuffix(f".{ALL}") if narrow != ALL else narrow)
    except ValueError:
        return False  # a wrong match is reported by the reader of broker.xml


def _roles(text: str) -> list[str]:
    """Splits roles; `*` is everyone who is logged in."""
    return [EVERYONE if each == "*" else each for each in listed(text)]


def _by_permission(rights: dict[str, list[str]], table: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for right, permissions in table.items():
        for permission in permissions:
            roles = found.setdefault(permission, [])
            roles.extend(each for each in rights[right] if each not in roles)
    return found


