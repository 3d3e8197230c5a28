"""Sockets: acceptors, dialer, TLS, UDP groups, name resolution."""
