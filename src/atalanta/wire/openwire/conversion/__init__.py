"""OpenWire messages to and from the messages of the broker."""
