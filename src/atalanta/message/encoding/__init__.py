"""Primitive encodings shared by messages, packets and records."""
