"""Clients and their sessions, for every protocol."""
