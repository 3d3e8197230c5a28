"""Queues of nodes without the log view: a write-ahead folder for streams, browsers for batch reads."""
