"""Queues: references, consumers, dispatch order."""
