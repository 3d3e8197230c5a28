"""The log view of the client: positions and entries of a queue that is read like a log."""
