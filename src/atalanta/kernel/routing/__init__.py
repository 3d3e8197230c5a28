"""Addresses, bindings, wildcards and diverts."""
