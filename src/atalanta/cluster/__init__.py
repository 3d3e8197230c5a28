"""Clustering: who is there, what they hold, and how messages get to them. Pure."""
