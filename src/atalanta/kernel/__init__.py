"""Broker rules. Pure: no protocol, no socket, no file, no clock, no randomness."""
