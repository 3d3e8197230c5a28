"""Distributed transactions, and their recovery."""
