"""A connection router as management sees it; the cluster provides the subclass."""

from __future__ import annotations

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class ListedRouter:
    """The interface of one router for management. A filter is a regular expression or None."""

    def target(self, now: int, key: str) -> dict[str, object] | None:
        """Returns nodeID, local, and connector (None for this node). None: none is ready, or the key is refused."""
        raise NotImplementedError

    def local_target_filter(self) -> str | None:
        raise NotImplementedError

    def key_filter(self) -> str | None:
        raise NotImplementedError

    def set_local_target_filter(self, text: str | None) -> None:
        """Sets the filter. Raises ValueError for an invalid regular expression."""
        raise NotImplementedError

    def set_key_filter(self, text: str | None) -> None:
        """Sets the filter. Raises ValueError for an invalid regular expression."""
        raise NotImplementedError
