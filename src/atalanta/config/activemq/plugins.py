"""Conversion of `<plugins>`: users, permissions, redelivery, and what other plugins do that a broker.xml can say."""

from __future__ import annotations

from pathlib import Path

from atalanta.config.activemq import tables
from atalanta.config.activemq.authorization import EVERYONE, Authorization
from atalanta.config.activemq.elements import NO_BEANS, Core, Elements, listed
from atalanta.config.activemq.policies import Policies
from atalanta.config.activemq.references import BEAN
from atalanta.config.activemq.transports import TransportConnectors
from atalanta.config.users.login_config import LOGIN_FILE
from atalanta.config.users.logins import LoginSource, NamedUser
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.security.login_modules import Guest


class Plugins:
    """Reads the plugins. `logins` are the users; None without authentication."""

    def __init__(
        self, elements: Elements, core: Core, policies: Policies, transports: TransportConnectors, folder: Path
    ) -> None:
        self.elements = elements
        self.core = core
        self.policies = policies
        self.transports = transports
        self.folder = folder
        self.authorization = Authorization(elements, core)
        self.logins: LoginSource | None = None

    def read(self, section: XmlElement) -> None:
        """Reads `<plugins>`. A bean that decides who may do what is a problem: without it everyone would."""
        for child in section.children:
            name = child.attributes.get("class", "")
            if child.name == BEAN and any(part in name.lower() for part in tables.SECURITY_CLASSES):
                text = f"bean {name}: {NO_BEANS}, and without it everyone may do what it forbids"
                hint = "write it as one of Classic's elements, as <simpleAuthenticationPlugin>"
                self.elements.problem(child, text, hint)
        self.elements.children(
            section,
            {
                "simpleAuthenticationPlugin": self._simple,
                "jaasAuthenticationPlugin": self._jaas,
                "jaasCertificateAuthenticationPlugin": self._jaas,
                "jaasDualAuthenticationPlugin": self._jaas,
                "authorizationPlugin": self.authorization.read,
                "redeliveryPlugin": self.policies.redelivery_plugin,
                "discardingDLQBrokerPlugin": self._discarding,
                "timeStampingBrokerPlugin": self._time_stamps,
                "runtimeConfigurationPlugin": self._refresh,
                "statisticsBrokerPlugin": lambda node: self.core.put(node, "statistics-requests", "true"),
                **dict.fromkeys(tables.SELECTOR_CACHES, self._selector_cache),
            },
            tables.PLUGINS_SILENT,
            tables.PLUGINS_LOST,
        )

    # -- users --------------------------------------------------------------------------------------
    def _simple(self, node: XmlElement) -> None:
        """Reads users with passwords and groups. `anonymousAccessAllowed` lets clients without a user in."""
        names = ("anonymousAccessAllowed", "anonymousUser", "anonymousGroup")
        values = self.elements.values(node, names)
        anonymous = self.elements.true(node, values, "anonymousAccessAllowed")
        user, group = (values.get(name, "anonymous") for name in names[1:])
        self.logins = LoginSource(guest=Guest(user, group, True, True) if anonymous else None, everyone=EVERYONE)
        self.elements.children(node, {"users": self._users})

    def _users(self, node: XmlElement) -> None:
        self.elements.children(node, {"authenticationUser": self._user})

    def _user(self, node: XmlElement) -> None:
        values = self.elements.values(node, ("username", "password", "groups"))
        name = values.get("username", "")
        assert self.logins is not None
        if not name:
            self.elements.problem(node, "an <authenticationUser> needs a username")
        elif any(known.name == name for known in self.logins.users):
            self.elements.problem(node, f"user '{name}' is given twice")
        else:
            roles = (*listed(values.get("groups", "")), EVERYONE)
            password = values.get("password", "")
            self.logins.users.append(NamedUser(name, password, roles, node.file, node.line))

    def _jaas(self, node: XmlElement) -> None:
        """Reads which entries of the login.config beside this file have the users."""
        names = ("configuration", "sslConfiguration")
        values = self.elements.values(node, names, {}, {}, tables.JAAS_FIXED)
        if not (self.folder / LOGIN_FILE).exists():
            self.elements.problem(node, f"there is no {LOGIN_FILE} beside this file", "copy it, and the files it names")
        # The defaults of JaasAuthenticationPlugin and JaasDualAuthenticationPlugin.
        self.logins = LoginSource(domain=values.get("configuration", "activemq-domain"), everyone=EVERYONE)
        ssl_domain = "activemq-ssl-domain" if node.name == "jaasDualAuthenticationPlugin" else ""
        self.transports.ssl_domain = values.get("sslConfiguration", ssl_domain)

    # -- other plugins ------------------------------------------------------------------------------
    def _discarding(self, node: XmlElement) -> None:
        names = ("dropAll", *tables.DROPS_TEMPORARY)
        silent, lost = tables.DISCARDING_PLUGIN_SILENT, tables.DISCARDING_PLUGIN_LOST
        values = self.elements.values(node, names, silent, lost)
        drops = self.elements.true(node, values, "dropAll", True)
        if drops and "dropOnly" not in node.attributes:
            self.policies.drops = True
        for name in tables.DROPS_TEMPORARY:
            if self.elements.true(node, values, name, True) and not drops:
                self.elements.finding(node, f"{node.name} {name}", tables.KEPT_TEMPORARY, True)
            elif name in values:
                self.elements.finding(node, f"{node.name} {name}", tables.DROPS_SILENT[name])

    def _time_stamps(self, node: XmlElement) -> None:
        values = self.elements.values(node, ("zeroExpirationOverride", "ttlCeiling"), {}, tables.TIME_STAMPS_LOST)
        self.elements.finding(node, node.name, tables.TIME_STAMPS, True)
        for name, element in (("zeroExpirationOverride", "expiry-delay"), ("ttlCeiling", "max-expiry-delay")):
            if self.elements.whole(node, values, name, 0) > 0:
                self.policies.everywhere[element] = values[name]

    def _selector_cache(self, node: XmlElement) -> None:
        """Reads the plugin that keeps selectors of virtual topics, as this broker always does."""
        self.elements.values(node, (), tables.SELECTOR_CACHE_SILENT, {}, tables.SELECTOR_CACHE_FIXED)

    def _refresh(self, node: XmlElement) -> None:
        values = self.elements.values(node, ("checkPeriod",))
        period = self.elements.whole(node, values, "checkPeriod", 0)
        self.core.put(node, "configuration-file-refresh-period", str(period or -1))
