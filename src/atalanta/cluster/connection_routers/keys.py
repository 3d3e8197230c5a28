"""The key of a client, by which its target is chosen (KeyResolver of Artemis)."""

from __future__ import annotations

import re
from typing import Final

from atalanta.cluster.connection_routers.config import CLIENT_ID, ROLE_NAME, SNI_HOST, SOURCE_IP

NULL: Final = "NULL"


class Newcomer:
    """The attributes of a client that logs in. `remote` is "host:port"."""

    def __init__(
        self,
        client_id: str | None,
        user: str,
        roles: tuple[str, ...],
        remote: str,
        server_name: str | None,
    ) -> None:
        self.client_id = client_id
        self.user = user
        self.roles = roles
        self.remote = remote
        self.server_name = server_name


class KeyResolver:
    """Resolves the key of a client.

    `filter_text` is a regular expression whose first match is the key. For roles, the first role with a match
    counts.
    """

    def __init__(self, key_type: str, filter_text: str | None) -> None:
        self.key_type = key_type
        self.filter = re.compile(filter_text) if filter_text and filter_text.strip() else None

    def resolve(self, client: Newcomer) -> str:
        if self.key_type == ROLE_NAME:
            for role in client.roles:
                found = self._filtered(role)
                if found is not None:
                    return found
            return NULL
        value = self._value(client)
        found = None if value is None else self._filtered(value)
        return NULL if found is None else found

    def _value(self, client: Newcomer) -> str | None:
        if self.key_type == CLIENT_ID:
            return client.client_id
        if self.key_type == SNI_HOST:
            return client.server_name
        if self.key_type == SOURCE_IP:
            host, separator, _ = client.remote.rpartition(":")
            return host if separator else client.remote
        return client.user

    def _filtered(self, value: str) -> str | None:
        if self.filter is None:
            return value
        found = self.filter.search(value)
        return None if found is None else found.group()
