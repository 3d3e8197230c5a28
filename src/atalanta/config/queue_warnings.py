"""What about a file's queues is allowed, and may take more memory than was meant."""

from __future__ import annotations

from atalanta.config.configuration import Configuration

NAMES_SHOWN = 5


def queue_warnings(configuration: Configuration) -> list[str]:
    """Last-value queues and rings whose address is to page: they do not. Told at every start and by `check`."""
    settings = configuration.address_settings()
    names: list[str] = []
    for address in configuration.broker.addresses:
        of_address = settings.match(address.name)
        if of_address.address_full_policy != "PAGE":
            continue
        for queue in address.queues:
            spec = queue.spec()
            if spec.last_value_key is not None or spec.ring_size >= 0:
                names.append(queue.name)
    if not names:
        return []
    shown = ", ".join(f"'{name}'" for name in names[:NAMES_SHOWN])
    if len(names) > NAMES_SHOWN:
        shown += f" and {len(names) - NAMES_SHOWN} more"
    return [
        f"last-value and ring queues do not page, whatever address-full-policy says: {shown} stay in memory,"
        " one message a value, ring-size messages a ring"
    ]
