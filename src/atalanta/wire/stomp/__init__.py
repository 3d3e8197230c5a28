"""STOMP 1.0, 1.1 and 1.2: the broker's side of a connection."""
