"""Clients and their sessions, whatever the protocol."""
