"""Transactions of a client: local ones, and branches of XA transactions."""
