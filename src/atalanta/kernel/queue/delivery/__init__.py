"""Enqueueing and delivery: the message store, scheduled messages, delivery counts."""
