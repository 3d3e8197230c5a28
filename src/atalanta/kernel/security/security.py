"""Security: users with passwords and roles, and permissions of roles by address match.

Follows Artemis' SecurityStoreImpl: only the most specific match decides, roles of other matches are not added.
Without a match no user has the permission. The cluster user has all permissions; it can log in only where the node has
a password for it (Configuration.accepted_cluster_password).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.routing.temporary_names import TemporaryNames, is_unique
from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch, verify_match
from atalanta.kernel.security.directory_users import DirectoryUsers
from atalanta.kernel.security.login_modules import (
    ACCEPTED,
    NO_RESULTS,
    DirectoryResults,
    LoginChain,
)
from atalanta.kernel.security.password import StoredPassword

SEND: Final = "send"
CONSUME: Final = "consume"
BROWSE: Final = "browse"
MANAGE: Final = "manage"
CREATE_ADDRESS: Final = "createAddress"
DELETE_ADDRESS: Final = "deleteAddress"
CREATE_DURABLE_QUEUE: Final = "createDurableQueue"
DELETE_DURABLE_QUEUE: Final = "deleteDurableQueue"
CREATE_NON_DURABLE_QUEUE: Final = "createNonDurableQueue"
DELETE_NON_DURABLE_QUEUE: Final = "deleteNonDurableQueue"
VIEW: Final = "view"
EDIT: Final = "edit"
PERMISSIONS: Final = (
    SEND,
    CONSUME,
    BROWSE,
    MANAGE,
    CREATE_ADDRESS,
    DELETE_ADDRESS,
    CREATE_DURABLE_QUEUE,
    DELETE_DURABLE_QUEUE,
    CREATE_NON_DURABLE_QUEUE,
    DELETE_NON_DURABLE_QUEUE,
    VIEW,
    EDIT,
)
OLD_PERMISSIONS: Final = {
    "createTempQueue": CREATE_NON_DURABLE_QUEUE,
    "deleteTempQueue": DELETE_NON_DURABLE_QUEUE,
}
DEFAULT_CLUSTER_USER: Final = "ACTIVEMQ.CLUSTER.ADMIN.USER"
DEFAULT_CLUSTER_PASSWORD: Final = "CHANGE ME!!"
# What others than the creator of a temporary destination may have permissions for.
FOR_OTHERS: Final = (SEND, BROWSE, MANAGE, VIEW, EDIT)
CLASSIC_NAMESPACE: Final = "ActiveMQ.Temporary"  # the uuid-namespace that an activemq.xml has
CERTIFIED_MAX: Final = 10_000  # identities by certificate that a change of users updates
ANSWERS_MAX: Final = 10_000  # cached answers of one identity and permission
# The stored passwords of unknown users: plain if those of all users are, else the hash of no password.
NOBODY_PLAIN: Final = StoredPassword("")
NOBODY_HASHED: Final = "ENC(1:00:" + "00" * 64 + ")"


def is_public_password(cluster_password: str) -> bool:
    """Returns whether everybody knows this cluster password: the default, or empty. Artemis warns of it (AMQ222007)."""
    return cluster_password in ("", DEFAULT_CLUSTER_PASSWORD)


@dataclass
class SecurityRule:
    """A `<security-setting>`: permission -> roles that have it on matching addresses."""

    match: str
    permissions: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Identity:
    """An authenticated user; `cluster` for the user that nodes use among themselves.

    All sessions of a user share one identity, so that a change of the user's roles affects all of them.
    """

    def __init__(self, user: str, roles: Sequence[str], cluster: bool) -> None:
        self.user = user
        self.roles: tuple[str, ...] = tuple(roles)
        self.cluster = cluster
        self.validated: bool = True  # False: security is off, the name is only what the client says
        self.version: int = -1
        self.answers: dict[str, dict[str, bool]] = {}

    def change_roles(self, roles: tuple[str, ...]) -> None:
        """Replaces the roles; the answers that it keeps were for those of before."""
        self.roles = roles
        self.version = -1


class User:
    def __init__(self, name: str, password: StoredPassword, roles: tuple[str, ...]) -> None:
        self.name = name
        self.password = password
        self.roles = roles
        self.identity: Identity = Identity(name, roles, False)


class Security:
    """The users and rules of one broker. Without `enabled` every login succeeds with all permissions.

    `cluster_password` None: nobody can log in as the cluster user.
    """

    def __init__(
        self,
        enabled: bool = True,
        cluster_user: str = DEFAULT_CLUSTER_USER,
        cluster_password: str | None = None,
        wildcard: WildcardConfiguration | None = None,
        uuid_namespace: str = "",
    ) -> None:
        self.enabled = enabled
        self.cluster_user = cluster_user
        self.cluster_password: str | None = cluster_password
        self.wildcard: WildcardConfiguration = (
            wildcard if wildcard is not None else WildcardConfiguration()
        )
        self.uuid_namespace = uuid_namespace
        # Their permissions are those of `uuid_namespace`.
        self.temporaries: TemporaryNames = TemporaryNames()
        self.users: dict[str, User] = {}
        self.peer: Identity = Identity(cluster_user, (), True)
        self.rounds_max: int = 0  # the work of the strongest hash of a password; 0: all are plain text
        self.nobody: StoredPassword = StoredPassword(NOBODY_HASHED)
        self.exact: dict[str, SecurityRule] = {}
        self.wild: list[tuple[WildcardMatch, SecurityRule]] = []
        self.version: int = 0
        self.login_caches: int = 0  # what was cached before is not valid
        self.chain: LoginChain | None = (
            None  # set if login.config has more than "users with passwords"
        )
        # Users of acceptors with a securityDomain; rules and cluster user are this object's.
        self.domains: dict[str, Security] = {}
        self.certified: dict[
            tuple[str, str, bool], Identity
        ] = {}  # by subject, name of the password's user, and whether as a guest
        self.directory_users: DirectoryUsers = DirectoryUsers()

    @property
    def has_default_password(self) -> bool:
        """Returns whether the cluster user can log in with a password that everybody knows."""
        return self.cluster_password is not None and is_public_password(self.cluster_password)

    def clear_login_cache(self) -> None:
        """Ends the validity of all cached answers to logins."""
        self.login_caches += 1

    def add_user(self, name: str, password: str, roles: Sequence[str]) -> None:
        """Adds a user. ValueError if `password` begins like a hash but is malformed."""
        user = User(name, StoredPassword(password), tuple(roles))
        self.users[name] = user
        self.rounds_max = max(self.rounds_max, user.password.rounds)
        self.version += 1

    def replace(self, fresh: Security) -> None:
        """Replaces users and rules by those of `fresh`, also for users that are logged in."""
        self.exact = fresh.exact
        self.wild = fresh.wild
        self.replace_users(fresh)

    def replace_users(self, fresh: Security) -> None:
        """Replaces the users by those of `fresh`.

        A user that is deleted, or has another password now, keeps the sessions without any permission. In Artemis such
        a session fails to authenticate again.
        """
        same: dict[str, User] = {}
        for name, user in self.users.items():
            known = fresh.users.get(name)
            if known is not None and known.password.same(user.password):
                user.identity.roles = known.roles
                known.identity = user.identity
                same[name] = known
            else:
                user.identity.roles = ()
        self.users = fresh.users
        asks_the_same = self.chain is not None and self.chain.same_directories(fresh.chain)
        before = None if self.chain is None else self.chain.guest
        self.chain = fresh.chain
        guests = self.chain is not None and before is not None and before.same(self.chain.guest)
        for key, identity in list(self.certified.items()):
            subject, name, guest = key
            renewed = self._certified(subject, same.get(name), guest)
            if (
                renewed is not None
                and (guests or not guest)
                and renewed.user == identity.user
                and (name == "" or name in same)
            ):
                identity.roles = renewed.roles
            else:
                identity.roles = ()
                del self.certified[key]
        self.directory_users.renew(self, same, asks_the_same)
        self.rounds_max = fresh.rounds_max
        self.version += 1
        for name, domain in self.domains.items():
            domain.replace_users(fresh.domains.get(name, Security()))
        for name, domain in fresh.domains.items():
            if name not in self.domains:
                # Another cluster user or password needs a restart, also in a new domain.
                domain.cluster_user, domain.cluster_password = self.cluster_user, self.cluster_password
                domain.peer = self.peer
                self.domains[name] = domain

    def domain(self, name: str) -> Security:
        """Returns the users of that domain, "" the default one; an unknown domain has no users."""
        if not name:
            return self
        found = self.domains.get(name)
        if found is None:
            found = Security(self.enabled, self.cluster_user, self.cluster_password)
        return found

    def set_rules(self, rules: Sequence[SecurityRule], literal_markers: str | None) -> None:
        """Replaces all rules. Of several with the same match the last one counts. ValueError as in `add_rule`."""
        self.exact = {}
        self.wild = []
        self.version += 1
        for rule in rules:
            match = rule.match
            literal = (
                literal_markers is not None
                and match[:1] == literal_markers[0]
                and match[-1:] == literal_markers[1]
            )
            self.add_rule(match[1:-1] if literal else match, rule.permissions, literal)

    def add_rule(
        self, match: str, permissions: Mapping[str, Sequence[str]], literal: bool = False
    ) -> None:
        """Adds a rule. ValueError for a malformed match or unknown permission. `literal`: no wildcards in the match."""
        if not literal:
            verify_match(match, self.wildcard)
        held: dict[str, tuple[str, ...]] = {}
        for name, roles in permissions.items():
            current = OLD_PERMISSIONS.get(name, name)
            if current not in PERMISSIONS:
                raise ValueError(f"unknown permission '{name}'")
            held[current] = held.get(current, ()) + tuple(roles)
        rule = SecurityRule(match, held)
        self.version += 1
        if literal or not self.wildcard.is_wild(match):
            self.exact[match] = rule
            return
        self.wild = [entry for entry in self.wild if entry[0].text != match]
        self.wild.append((WildcardMatch(match, self.wildcard), rule))
        self.wild.sort(key=_order)

    def quick_answer(self, user: str | None, password: str | None) -> Identity | None:
        """Returns the identity if no stored password is needed; None: check `stored_password`, or refuse."""
        if user is not None and user == self.cluster_user:
            expected = self.cluster_password
            if password is not None and expected is not None and _same(password, expected):
                return self.peer
            if self.enabled:
                return None
        if not self.enabled:
            stranger = Identity(user if user is not None else "", (), False)
            stranger.validated = False
            return stranger
        return None

    def stored_password(self, user: str) -> StoredPassword:
        """Returns the stored password of `user`; for an unknown user one that nobody has.

        A refusal takes the same time for each.
        """
        known = self.users.get(user)
        if self.rounds_max == 0:
            return NOBODY_PLAIN if known is None else known.password
        found = self.nobody if known is None else known.password
        found.refusal_rounds = self.rounds_max
        return found

    def verified(self, user: str, stored: StoredPassword, ok: bool) -> Identity | None:
        """Returns the identity after a comparison with `stored`; None if it failed or the password has changed."""
        known = self.users.get(user)
        if not ok or known is None or not known.password.same(stored):
            return None
        return known.identity

    def combined(
        self, subject: str, named: Identity | None, guest: bool = False
    ) -> Identity | None:
        """Combines a certificate's `subject` with the user of a correct password, `named`; None: refused.

        `guest`: the client may be a guest, if login.config says so.
        """
        chain = self.chain
        if chain is None or (named is not None and named.cluster):
            return named
        certified = chain.certificates.user_of(subject)
        if chain.verdict(certified is not None, named is not None, guest) != ACCEPTED:
            return None
        return self.accepted(subject, named, guest, NO_RESULTS)

    def accepted(
        self, subject: str, named: Identity | None, guest: bool, results: DirectoryResults
    ) -> Identity | None:
        """Returns the identity of a login that the chain has accepted, see `combined`; the same for the same user."""
        chain = self.chain
        if chain is None:
            return None
        certified = chain.certificates.user_of(subject)
        guest = guest and chain.is_guest(certified is not None, named is not None, results)
        if results.contribute():
            name = "" if named is None else named.user
            certificate = "" if certified is None else subject
            fresh = self.of_directory(certificate, self.users.get(name), guest, results)
            return self.directory_users.identity(fresh, certificate, name, guest, results)
        if certified is None and not guest:
            return named
        key = (
            "" if certified is None else subject,
            "" if named is None else named.user,
            guest,
        )
        found = self.certified.get(key)
        if found is None:
            found = self._certified(key[0], self.users.get(key[1]), guest)
            if found is not None and len(self.certified) < CERTIFIED_MAX:
                self.certified[key] = found
        return found

    def of_directory(
        self, subject: str, user: User | None, guest: bool, results: DirectoryResults
    ) -> Identity:
        """Returns a new identity of what a directory has said, with the user of a password, if there is one."""
        chain = self.chain
        assert chain is not None
        certified = chain.certificates.user_of(subject)
        named = None if user is None else user.name
        roles = chain.roles(certified, named, () if user is None else user.roles, guest, results)
        return Identity(chain.name(certified, named, guest, results), roles, False)

    def _certified(self, subject: str, user: User | None, guest: bool) -> Identity | None:
        chain = self.chain
        certified = None if chain is None else chain.certificates.user_of(subject)
        if chain is None or (certified is None and (not guest or subject)):
            return None
        named = None if user is None else user.name
        roles = chain.roles(certified, named, () if user is None else user.roles, guest)
        return Identity(chain.name(certified, named, guest), roles, False)

    def authenticate(self, user: str | None, password: str | None) -> Identity | None:
        """Returns the identity of the credentials, None if they are wrong or missing; computes hashes at once.

        The node itself uses `kernel.logins`, which has the hash computed on another thread.
        """
        identity = self.quick_answer(user, password)
        if identity is not None:
            return identity
        if user is None or password is None or user == self.cluster_user:
            return None
        stored = self.stored_password(user)
        return self.verified(user, stored, stored.verify(password))

    def authenticate_cluster(self, user: str, password: str) -> bool:
        """Returns True if a joining node has the cluster's credentials (checked also with security off)."""
        expected = self.cluster_password
        return expected is not None and _same(user, self.cluster_user) and _same(password, expected)

    def allowed(self, identity: Identity, permission: str, address: str) -> bool:
        """Returns True if `identity` has `permission` on `address`, which may be an FQQN `address::queue`.

        Nobody but its creator consumes from a temporary destination, deletes it or adds queues to it. With a
        `uuid_namespace` everybody may send there who may in the namespace, and its creator may do what that allows.
        """
        if not self.enabled or identity.cluster:
            return True
        bare = address.split("::", 1)[0]
        owner = self.temporaries.owner(bare)
        if owner and identity.user != owner and permission not in FOR_OTHERS:
            return False
        if not self.uuid_namespace:
            return self._answer(identity, permission, address, False)
        if owner is None:
            if permission == SEND and self.temporaries.is_elsewhere(bare):
                return self._answer(identity, permission, bare, True)
            return self._answer(identity, permission, address, False)
        if permission != SEND and identity.user != owner:
            return self._answer(identity, permission, address, False)
        return self.allowed_temporary(identity, permission, address)

    def allowed_temporary(self, identity: Identity, permission: str, address: str) -> bool:
        """Returns True if `identity` has `permission` on a temporary destination of its own, or one that is to be.

        A name that others could mean for an ordinary destination needs the permission on that one, too.
        """
        if not self.enabled or identity.cluster:
            return True
        if self.uuid_namespace:
            bare = address.split("::", 1)[0]
            if not self._answer(identity, permission, bare, True):
                return False
            if is_unique(bare):
                return True
        return self._answer(identity, permission, address, False)

    def _answer(self, identity: Identity, permission: str, address: str, temporary: bool) -> bool:
        """Returns whether the rules give the permission; `temporary`: those of the namespace. Answers are kept."""
        if identity.version != self.version:
            identity.answers = {}
            identity.version = self.version
        key = f"{permission} in the namespace" if temporary else permission
        answers = identity.answers.get(key)
        if answers is None:
            answers = {}
            identity.answers[key] = answers
        answer = answers.get(address)
        if answer is None:
            answer = self._holds(identity, permission, address, temporary)
            if len(answers) >= ANSWERS_MAX:
                answers.clear()
            answers[address] = answer
        return answer

    def _holds(self, identity: Identity, permission: str, address: str, temporary: bool) -> bool:
        rule = self._temporary_rule(address) if temporary else self._ordinary_rule(address)
        if rule is None:
            return False
        granted = rule.permissions.get(permission, ())
        for role in identity.roles:
            if role in granted:
                return True
        return False

    def rule(self, address: str) -> SecurityRule | None:
        """Returns the rule that decides for `address`.

        An exact rule for the FQQN comes first, then one for the address, then the most specific wildcard.
        """
        bare = address.split("::", 1)[0]
        if self.uuid_namespace and self.temporaries.has(bare):
            return self._temporary_rule(bare)
        return self._ordinary_rule(address)

    def _temporary_rule(self, name: str) -> SecurityRule | None:
        """Returns the rule of a temporary destination: that of the namespace and its name."""
        return self._rule_of(f"{self.uuid_namespace}{self.wildcard.delimiter}{name}", False)

    def _ordinary_rule(self, address: str) -> SecurityRule | None:
        found = self.exact.get(address)
        if found is not None:
            return found
        # Nobody has written the rules of this namespace for addresses that begin as it does.
        return self._rule_of(address.split("::", 1)[0], self.uuid_namespace == CLASSIC_NAMESPACE)

    def _rule_of(self, name: str, ordinary: bool) -> SecurityRule | None:
        """Returns the rule of a name; `ordinary`: without the rules of the namespace."""
        found = self.exact.get(name)
        if found is not None:
            return found
        for compiled, rule in self.wild:
            if compiled.matches(name) and not (ordinary and rule.match.startswith(self.uuid_namespace)):
                return rule
        return None


def _order(entry: tuple[WildcardMatch, SecurityRule]) -> tuple[int, int, tuple[int, ...], int]:
    return entry[0].order


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(
        left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass")
    )
